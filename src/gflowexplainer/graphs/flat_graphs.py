"""Graphs behind each other in flat tensors, as PyG batches them, with the undirected simple graph underneath.

``ptr`` marks where each graph begins. Two sets of edges are kept apart. ``edge_index`` holds every edge exactly as the
model sees it: direction, self loops and duplicates included. ``neighbor`` holds the undirected simple graph underneath:
two nodes are neighbours if any edge joins them, in whatever direction. Connectivity of an explanation always means
connectivity in the latter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.ops.segments import ranges, segment_ids
from gflowexplainer.ops.sorting import unique

FAR = 1 << 30
"""More steps than any path has."""
WIDE = 1024
"""Columns beyond which features are wide: they are not copied, and a policy that sees embeddings does not see them."""


@dataclass(frozen=True, kw_only=True)
class FlatGraphs:
    """``I`` graphs with ``n`` nodes, ``e`` edges and ``m`` neighbour entries in total.

    Attributes:
        ptr: First node of each graph, shape ``[I + 1]``.
        node_id: The user's id of each node, shape ``[n]``; ascending within a graph.
        edge_ptr: First edge of each graph, shape ``[I + 1]``.
        edge_index: Edges between flat node positions, shape ``[2, e]``, in the user's order.
        edge_id: The user's id of each edge, shape ``[e]``.
        neighbor_ptr: First neighbour entry of each node, shape ``[n + 1]``.
        neighbor: Neighbours as flat positions, shape ``[m]``; no self loops, no repeats, both directions.
        key: A random 64-bit number for each node, shape ``[n]``, which depends on its ids alone.
        x: Node features, shape ``[n, F]``; of all nodes of the user's graph where ``x_row`` says which are theirs.
        x_row: Row of ``x`` that belongs to each node, shape ``[n]``, where wide features are not copied; ``None`` where
            each node has its own row.
        node_arguments: Further arguments of the model with one row a node.
        edge_arguments: Further arguments of the model with one row an edge.
        shared_arguments: Arguments that are handed to the model unchanged.
        num_types, num_relations: Number of node types, in ``node_arguments["node_type"]``, and of relations, in
            ``edge_arguments["edge_type"]``, of the user's graphs.
    """

    ptr: Tensor
    node_id: Tensor
    edge_ptr: Tensor
    edge_index: Tensor
    edge_id: Tensor
    neighbor_ptr: Tensor
    neighbor: Tensor
    key: Tensor
    x: Tensor
    x_row: Tensor | None = None
    node_arguments: dict[str, Tensor] = field(default_factory=dict)
    edge_arguments: dict[str, Tensor] = field(default_factory=dict)
    shared_arguments: dict[str, Any] = field(default_factory=dict)
    num_types: int = 1
    num_relations: int = 1

    def __len__(self) -> int:
        return self.ptr.numel() - 1

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.x.device

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs together."""
        return self.node_id.numel()

    def rows(self, node: Tensor | slice = slice(None)) -> Tensor:
        """Returns the features of nodes, given as flat positions, shape ``[., F]``; of all if none are given."""
        if self.x_row is None and isinstance(node, slice) and node == slice(None):
            return self.x
        return self.x[node if self.x_row is None else self.x_row[node]]

    @cached_property
    def node_counts(self) -> Tensor:
        """Nodes of each graph, shape ``[I]``."""
        return self.ptr.diff()

    @cached_property
    def largest(self) -> int:
        """Nodes of the largest graph; no subgraph has more, whatever the bound on its size."""
        return int(self.node_counts.max()) if len(self) else 0

    @cached_property
    def edge_counts(self) -> Tensor:
        """Edges of each graph, shape ``[I]``."""
        return self.edge_ptr.diff()

    @cached_property
    def degree(self) -> Tensor:
        """Number of neighbours of each node, shape ``[n]``."""
        return self.neighbor_ptr.diff()

    @cached_property
    def owner(self) -> Tensor:
        """Graph of each node, shape ``[n]``."""
        return segment_ids(self.node_counts, self.num_nodes)

    @property
    def edge_owner(self) -> Tensor:
        """Graph of each edge, shape ``[e]``."""
        return self.owner.index_select(0, self.edge_index[0])

    @property
    def has_loops(self) -> bool:
        """Whether any edge begins where it ends."""
        source, target = self.edge_index
        return bool((source == target).any())

    @cached_property
    def neighbor_row(self) -> Tensor:
        """Node that each neighbour entry belongs to, shape ``[m]``."""
        return segment_ids(self.degree, self.neighbor.numel())

    @cached_property
    def neighbor_key(self) -> Tensor:
        """Number of each neighbour entry by its two ends, ascending, shape ``[m]``, to look pairs of nodes up in."""
        return self.neighbor_row * self.num_nodes + self.neighbor

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Lists the neighbours of ``nodes``: position in ``nodes`` and the neighbour, per entry."""
        owner, entry = self.neighbor_entries(nodes)
        return owner, self.neighbor[entry]

    def neighbor_entries(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Lists the same as positions in ``nodes`` and in :attr:`neighbor`."""
        return ranges(self.neighbor_ptr[nodes], self.degree[nodes])

    def hops_from(self, start: Tensor, limit: int = FAR) -> Tensor:
        """Counts the steps from one node of each graph to all others.

        Args:
            start: Flat position of that node, shape ``[I]``; ``-1`` for none.
            limit: Steps from which on nobody counts.

        Returns:
            Steps, shape ``[n]``; ``-1`` where there is no path of fewer than ``limit``.
        """
        hops = torch.full((self.num_nodes,), -1, device=self.device)
        newest, steps = start[start >= 0], 0
        while newest.numel() and steps < limit:
            hops[newest] = steps
            steps += 1
            _, reached = self.neighbors_of(newest)
            newest = unique(reached[hops[reached] < 0])
        return hops
