"""What nodes of a graph depend on within some steps, found on a CPU by NumPy.

A node of one of several owners is a number, ``owner * N + node``. Where there are few such numbers, those that were
reached are ticked off in a table; where the graph is large, they are a sorted list.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.ops.numpy_segments import counted, flat_ranges, found_in, order_of_different, sorted_unique

Array = NDArray[Any]
_TABLE = 1 << 16
"""Numbers up to which a table of all of them is kept."""


class Wider(NamedTuple):
    """Nodes of ``I`` owners together with whatever sends an edge to them.

    Attributes:
        reached: ``owner * N + node`` of all of them.
        inside: Where those of the instances stand among them, ascending, shape ``[n]``.
        sender, receiver: Both ends of each edge that ends inside: a number, and a position in ``inside``, both ``[e]``.
        edge_id: The user's id of each edge, shape ``[e]``; by owner, then in the user's order.
    """

    reached: Reached
    inside: Array
    sender: Array
    receiver: Array
    edge_id: Array

    def ends(self) -> Array:
        """Returns both ends of each edge as positions among the nodes, shape ``[2, e]``."""
        return np.array((self.reached.find(self.sender)[0], self.inside.take(self.receiver)))


class CutEdges(NamedTuple):
    """Nodes of ``I`` owners and the edges between them.

    Attributes:
        key: ``owner * N + node`` of the nodes, ascending, shape ``[n]``.
        ends: Both ends of each edge as positions in ``key``, shape ``[2, e]``; by owner, then in the user's order.
        edge_id: The user's id of each edge, shape ``[e]``.
        wider: The same with whatever else sends an edge to these nodes; ``None`` if nothing does.
    """

    key: Array
    ends: Array
    edge_id: Array
    wider: Wider | None


def find_edges(index: GraphIndex, nodes: Array, num_hops: int, limit: int | None) -> CutEdges | None:
    """Finds what ``nodes`` ``[I]`` depend on within ``num_hops`` steps; ``None`` where the bound leaves nodes out."""
    ptr, source, edge = index.ptr.numpy(), index.source.numpy(), index.edge_id.numpy()
    total, owners = index.num_nodes, nodes.size
    reached: Reached = _Ticked(owners * total) if owners * total <= _TABLE else _Sorted()
    newest = reached.add(np.arange(owners) * total + nodes if owners > 1 else nodes)
    for _ in range(num_hops):
        newest = reached.add(_incoming(ptr, source, newest, total, alone=owners == 1)[2])
        if newest.size == 0:
            break
        if limit is not None and _too_many(reached.keys(), total, owners, limit):
            return None
    key = reached.keys()
    receiver, position, sender = _incoming(ptr, source, key, total, alone=owners == 1)
    edge_id = edge[position]
    number = edge_id if owners == 1 else key.take(receiver) // total * index.num_edges + edge_id
    order = order_of_different(number, owners * index.num_edges)
    receiver, edge_id, sender = receiver[order], edge_id[order], sender[order]
    place, there = reached.find(sender)
    if np.count_nonzero(there) == there.size:
        return CutEdges(key, np.array((place, receiver)), edge_id, None)
    own = there.nonzero()[0]
    ends = np.array((place.take(own), receiver.take(own)))
    outside = reached.add(sender)
    if limit is not None and _too_many(outside, total, owners, limit):
        return None
    wider = Wider(reached, reached.find(key)[0], sender, receiver, edge_id)
    return CutEdges(key, ends, edge_id.take(own), wider)


class Reached(Protocol):
    """A growing set of numbers."""

    def add(self, keys: Array) -> Array:
        """Adds numbers, repeats included; returns those that are new, ascending."""
        ...

    def keys(self) -> Array:
        """Returns all numbers, ascending."""
        ...

    def find(self, keys: Array) -> tuple[Array, Array]:
        """Returns where numbers stand among all, and whether they do; a position only means something if so."""
        ...


class _Ticked:
    """Numbers in ``[0, bound)``."""

    def __init__(self, bound: int) -> None:
        self._there = np.zeros(bound, dtype=bool)

    def add(self, keys: Array) -> Array:
        found = np.zeros(self._there.size, dtype=bool)
        found[keys] = True
        new = (found > self._there).nonzero()[0]
        self._there[new] = True
        return new

    def keys(self) -> Array:
        return self._there.nonzero()[0]

    def find(self, keys: Array) -> tuple[Array, Array]:
        there = self._there.nonzero()[0]
        place = np.empty(self._there.size, dtype=np.int64)
        place[there] = counted(there.size)
        return place[keys], self._there[keys]


class _Sorted:
    """Any numbers."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, dtype=np.int64)

    def add(self, keys: Array) -> Array:
        found = sorted_unique(keys)
        new = found[~found_in(self._keys, found)[1]]
        self._keys = np.sort(np.concatenate([self._keys, new]), kind="stable")
        return new

    def keys(self) -> Array:
        return self._keys

    def find(self, keys: Array) -> tuple[Array, Array]:
        return found_in(self._keys, keys)


def _incoming(ptr: Array, source: Array, key: Array, total: int, *, alone: bool) -> tuple[Array, Array, Array]:
    """Lists the edges that end at ``key``: which of them, the position in the index, and the key of the sender.

    Of a single owner, which is ``alone``, keys are nodes.
    """
    node = key if alone else key % total
    first = ptr[node]
    receiver, position = flat_ranges(first, ptr[node + 1] - first)
    sender = source[position]
    return receiver, position, sender if alone else (key - node)[receiver] + sender


def _too_many(key: Array, total: int, owners: int, limit: int) -> bool:
    return key.size > limit and bool(np.bincount(key // total, minlength=owners).max() > limit)
