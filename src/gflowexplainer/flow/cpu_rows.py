"""States while they grow on a CPU: for every node of a state's instance, how many members it is joined to.

A state has a row over the nodes of its own instance. A step copies the rows of the parents and adds one at the
neighbours of what is new; the frontier is where a row is positive. Nothing is sorted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.numpy_segments import boundaries, counted, flat_ranges

Array = NDArray[Any]
INSIDE = -(1 << 14)
"""Marks a member in its row: no number of neighbours makes it positive."""
_NO_LINKS = np.zeros((), dtype=np.int16)
_SQUARE = 512
"""Nodes of a single instance up to which a step adds whole rows of its adjacency matrix."""


def is_square(instances: Instances) -> bool:
    """Returns whether there is a single small instance, whose adjacency matrix is worth writing out."""
    return len(instances) == 1 and instances.num_nodes <= _SQUARE


def added_rows(instances: Instances) -> Array:
    """Returns what each node of the single instance adds to a row: one at its neighbours, :data:`INSIDE` at itself.

    Shape ``[n, n]``; nobody may write into it.
    """
    return instances.remembered("added_rows", _added_rows)


def _added_rows(instances: Instances) -> Array:
    nodes = instances.num_nodes
    added = np.zeros((nodes, nodes), dtype=np.int16)
    flat = added.reshape(-1)
    flat[instances.array("neighbor_key")] = 1
    flat[:: nodes + 1] = INSIDE
    return added


class Frontier(NamedTuple):
    """What may be added to ``U`` states, ``F`` entries.

    Attributes:
        state: State of each entry, ascending, shape ``[F]``.
        node: Its node, ascending within a state, shape ``[F]``.
        links: Members that the node is joined to, in few bits, shape ``[F]``.
        ptr: Where the entries of each state begin, shape ``[U + 1]``.
        ways: How many each state has, shape ``[U]``.
    """

    state: Array
    node: Array
    links: Array
    ptr: Array
    ways: Array


class Rows(ABC):
    """``U`` states of the same size.

    Attributes:
        instance, key: Instance and hash of each state, shape ``[U]``.
        members: Members in order of insertion, shape ``[U, K]``.
        size: Number of members.
        sums: What the network makes of the members, shape ``[U, 2 H]``.
    """

    instance: Array
    key: Array
    members: Array
    size: int
    sums: Array

    @staticmethod
    def empty(instances: Instances, instance: Array, key: Array, max_nodes: int) -> Rows:
        """Makes states of ``instance`` ``[U]`` without members, with room for ``max_nodes``."""
        kind = _SquareRows if is_square(instances) else _FlatRows
        rows = kind(instances, instance)
        rows.instance, rows.key, rows.size = instance, key, 0
        rows.members = np.empty((instance.size, max_nodes), dtype=np.int64)
        rows.members.fill(-1)
        return rows

    def grown(self, parent: Array, node: Array, key: Array) -> Rows:
        """Copies the rows ``parent`` with one node more each, under new keys."""
        rows = self._grown(parent, node)
        rows.instance, rows.key, rows.size = self.instance[parent], key, self.size + 1
        rows.members = self.members.take(parent, axis=0)
        rows.members[:, self.size] = node
        return rows

    def frontier(self, *, bounded: bool) -> Frontier:
        """Lists what may be added; nothing where the size bound is reached, anything where nothing is inside."""
        table = self._table()
        if bounded:
            place = np.zeros(0, dtype=np.int64)
        else:
            place = (table > _NO_LINKS).nonzero()[0] if self.size else np.arange(table.size)
        begin, shift = self._places()
        ptr = place.searchsorted(begin)
        ways = ptr[1:] - ptr[:-1]
        state = counted(ways.size).repeat(ways)
        return Frontier(state, place - shift[state], table[place], ptr, ways)

    @abstractmethod
    def _grown(self, parent: Array, node: Array) -> Rows: ...

    @abstractmethod
    def _table(self) -> Array:
        """All rows one behind the other; :data:`INSIDE` and more below zero at members."""

    @abstractmethod
    def _places(self) -> tuple[Array, Array]:
        """Returns where rows begin in the table, ``[U + 1]``, and what a node of each is shifted by there, ``[U]``."""


class _FlatRows(Rows):
    """States of several instances, of any number of nodes. No row is padded.

    Attributes:
        table: The rows one behind the other.
        counts: Length of each row, shape ``[U]``.
        base: First node of the instance of each, shape ``[U]``.
        begin, shift: Where each row begins, ``[U + 1]``, and what is added to a node to find it there, ``[U]``.
    """

    def __init__(self, instances: Instances, instance: Array) -> None:
        names = ("neighbor_ptr", "degree", "neighbor")
        self._lists: tuple[Array, ...] = tuple(instances.array(name) for name in names)
        counts = instances.array("node_counts").take(instance)
        self._place(counts, instances.array("ptr").take(instance))
        self.table = np.zeros(int(self.begin[-1]), dtype=np.int16)

    def _place(self, counts: Array, base: Array) -> None:
        self.counts, self.base = counts, base
        self.begin = boundaries(counts)
        self.shift = self.begin[:-1] - base

    def _grown(self, parent: Array, node: Array) -> _FlatRows:
        rows, counts = object.__new__(_FlatRows), self.counts.take(parent)
        rows._lists = neighbor_ptr, degree, neighbor = self._lists
        rows._place(counts, self.base.take(parent))
        rows.table = self.table.take(flat_ranges(self.begin.take(parent), counts)[1])
        rows.table[rows.shift + node] = INSIDE
        owner, entry = flat_ranges(neighbor_ptr.take(node), degree.take(node))
        # Neighbours of one node differ, so no place is counted twice.
        rows.table[neighbor.take(entry) + rows.shift.take(owner)] += 1
        return rows

    def _table(self) -> Array:
        return self.table

    def _places(self) -> tuple[Array, Array]:
        return self.begin, self.shift


class _SquareRows(Rows):
    """States of one small instance: all rows are equally long, and a node adds its row of a matrix.

    Attributes:
        table: The rows, shape ``[U, n]``.
        added: The :func:`added_rows`.
        width: Length of a row.
    """

    def __init__(self, instances: Instances, instance: Array) -> None:
        self.table = np.zeros((instance.size, instances.num_nodes), dtype=np.int16)
        self.added, self.width = added_rows(instances), np.array(instances.num_nodes)

    def _grown(self, parent: Array, node: Array) -> _SquareRows:
        rows = object.__new__(_SquareRows)
        rows.added, rows.width = self.added, self.width
        rows.table = self.table.take(parent, axis=0)
        rows.table += self.added.take(node, axis=0)
        return rows

    def _table(self) -> Array:
        return self.table.reshape(-1)

    def _places(self) -> tuple[Array, Array]:
        begin = counted(self.table.shape[0] + 1) * self.width
        return begin, begin
