r"""Which nodes a prediction depends on: found along incoming edges and, where they are too many, by relevance.

The relevance of a node to the explained one is, up to damping, the probability that a random walk from the explained
node against the edges comes by on the shortest way: in expectation that is how much of a node's features arrives at
the explained node in a network that averages over neighbours. It is capped by that of the next node on the way,

.. math:: r(u) = d \, \min\Big( \sum_{u \to v} \frac{r(v)}{\deg(v)}, \; \max_{u \to v} r(v) \Big), \qquad d = 0.85,

the sum over nodes :math:`v` one step nearer, so that it falls along every way outwards and the most relevant nodes are
always connected to the explained one. A neighbour of a hub shares its relevance with all the others and goes first.

Node sets of many explained nodes are sorted arrays of *keys*, ``owner * N + node``. All of this happens in NumPy on the
CPU, wherever the graph is: it follows a few edges, and a GPU would begin each step later than a CPU is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.ops.hashed_random import mix
from gflowexplainer.ops.segments import Array, flat_ranges
from gflowexplainer.ops.sorting import first_places, found_in

DAMPING = 0.85
_ENTRIES_AT_ONCE = 1 << 22
"""Incoming edges that are looked at together."""


class Reach(NamedTuple):
    """The nodes that some owners depend on, ``n`` in all.

    Attributes:
        key: ``owner * N + node``, ascending, shape ``[n]``.
        relevance: In (0, 1], shape ``[n]``.
        dropped: Keys of nodes that were seen and left out, ascending.
    """

    key: Array
    relevance: Array
    dropped: Array


class Surroundings(NamedTuple):
    """Some nodes, whatever sends an edge to them, ``n`` nodes in all, and these ``e`` edges.

    Attributes:
        reach: All the nodes.
        inside: Positions among them of those that were surrounded.
        edge_index: Both ends of each edge as positions in ``reach.key``, shape ``[2, e]``; by owner and then in the
            user's order.
        edge_id: The user's id of each edge, shape ``[e]``.
    """

    reach: Reach
    inside: Array
    edge_index: Array
    edge_id: Array


def reach(index: GraphIndex, start: Array, num_hops: int, limit: int | None = None) -> Reach:
    """Follows incoming edges for ``num_hops`` steps.

    Args:
        index: The graph.
        start: Keys to begin with, ascending.
        num_hops: Number of steps.
        limit: Nodes that an owner keeps at most, the most relevant ones. What is left out is not followed further.
    """
    key, relevance, dropped = start, np.ones(start.size), start[:0]
    found, value = key, relevance
    for _ in range(num_hops):
        sent = [_senders(index, found[rows], value[rows]) for rows in _chunks(index, found)]
        if not sent:
            break
        found, value = (np.concatenate([getattr(part, name) for part in sent]) for name in ("key", "relevance"))
        fresh = ~found_in(key, found)[1]
        found, value = found[fresh], value[fresh]
        key, relevance = _merged(key, relevance, found, value)
        if limit is not None:
            kept = _most_relevant(index, key, relevance, limit)
            dropped = np.concatenate([dropped, key[~kept]])
            key, relevance = key[kept], relevance[kept]
            stays = found_in(key, found)[1]
            found, value = found[stays], value[stays]
    dropped = np.unique(dropped)
    return Reach(key, relevance, dropped[~found_in(key, dropped)[1]])


def everything(index: GraphIndex, count: int) -> Reach:
    """Takes all nodes of the graph, for each of ``count`` owners."""
    key = np.arange(count * index.num_nodes)
    return Reach(key, np.ones(key.size), key[:0])


def surround(index: GraphIndex, inner: Reach, limit: int | None = None) -> Surroundings:
    """Adds whatever sends an edge to the nodes of ``inner``; for each owner at most ``limit`` nodes more."""
    parts, count, none = list[Surroundings](), 0, inner.key[:0]
    for rows in _chunks(index, inner.key):
        part = _surround_some(index, Reach(inner.key[rows], inner.relevance[rows], none), limit)
        parts.append(part._replace(inside=part.inside + count, edge_index=part.edge_index + count))
        count += part.reach.key.size
    key, relevance, dropped = (np.concatenate(each) for each in zip(*(part.reach for part in parts), strict=True))
    inside, ends, edge_id = (np.concatenate([part[i] for part in parts], axis=-1) for i in (1, 2, 3))
    return Surroundings(Reach(key, relevance, np.union1d(inner.dropped, dropped)), inside, ends, edge_id)


def _surround_some(index: GraphIndex, inner: Reach, limit: int | None) -> Surroundings:
    """Does that for some owners, whose incoming edges fit into memory."""
    sent = _senders(index, inner.key, inner.relevance)
    fresh = ~found_in(inner.key, sent.key)[1]
    found, value, dropped = sent.key[fresh], sent.relevance[fresh], inner.dropped
    if limit is not None:
        kept = _most_relevant(index, found, value, limit)
        dropped, found, value = found[~kept], found[kept], value[kept]
    outer = Reach(*_merged(inner.key, inner.relevance, found, value), dropped)
    inside = found_in(outer.key, inner.key)[0]
    place, there = found_in(outer.key, sent.key)
    arrives = there[sent.sender].nonzero()[0]
    receiver, edge = sent.receiver[arrives], index.edge_id[sent.position[arrives]]
    _, _, rank = first_places(inner.key[receiver] // index.num_nodes * index.num_edges + edge)
    rows = np.empty((3, edge.size), dtype=np.int64)
    rows[:, rank] = place[sent.sender[arrives]], inside[receiver], edge
    return Surroundings(outer, inside, rows[:2], rows[2])


class _Senders(NamedTuple):
    """The different nodes that send edges to others, and ``e`` edges one by one.

    Attributes:
        key, relevance: Of each sender, by key, ascending.
        sender: Sender of each edge, shape ``[e]``.
        receiver: Which of the others it goes to, shape ``[e]``.
        position: Where it stands in the index, shape ``[e]``.
    """

    key: Array
    relevance: Array
    sender: Array
    receiver: Array
    position: Array


def _senders(index: GraphIndex, key: Array, relevance: Array) -> _Senders:
    """Finds the nodes that send an edge to ``key``, with their relevance by these edges."""
    node = key % index.num_nodes
    counts = index.in_degree(node)
    receiver, position = flat_ranges(index.ptr[node], counts)
    found, _, sender = first_places((key - node)[receiver] + index.source[position])
    share = np.bincount(sender, (relevance / np.maximum(counts, 1))[receiver], minlength=found.size)
    best = np.zeros(found.size)
    np.maximum.at(best, sender, relevance[receiver])
    return _Senders(found, DAMPING * np.minimum(share, best), sender, receiver, position)


def _chunks(index: GraphIndex, key: Array) -> Iterator[slice]:
    """Cuts keys into parts of whole owners whose incoming edges fit into memory, one owner at least."""
    owner = key // index.num_nodes
    begin = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
    edges = np.append(0, index.in_degree(key % index.num_nodes).cumsum())[begin]
    first, last = 0, begin.size - 1
    while first < last:
        end = max(first + 1, int(edges.searchsorted(edges[first] + _ENTRIES_AT_ONCE, side="right")) - 1)
        yield slice(int(begin[first]), int(begin[end]))
        first = end


def _merged(key: Array, value: Array, more: Array, values: Array) -> tuple[Array, Array]:
    """Unites two ascending lists of keys that have none in common, and what belongs to each key."""
    key = np.concatenate([key, more])
    order = key.argsort(kind="stable")
    return key[order], np.concatenate([value, values])[order]


def _most_relevant(index: GraphIndex, key: Array, relevance: Array, limit: int) -> Array:
    """Marks the ``limit`` most relevant nodes of each owner, shape ``[n]``; of equal ones, arbitrary but fixed."""
    owner = key // index.num_nodes
    counts = np.bincount(owner)
    if counts.size == 0 or counts.max() <= limit:
        return np.ones(key.size, dtype=bool)
    order = np.lexsort((mix(key % index.num_nodes), -relevance, owner))
    kept = np.empty(key.size, dtype=bool)
    kept[order] = np.arange(key.size) - (counts.cumsum() - counts)[owner[order]] < limit
    return kept
