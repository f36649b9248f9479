"""Links that a GNN predicts, with the paths that decide them: what a link task is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

EdgeType = tuple[str, str, str]
TypedEdge = tuple[Any, int]
"""A relation, and the number of an edge among those of the relation."""
RELATION = ("node", "edge", "node")
"""What the one relation of a plain graph is called."""


@dataclass(frozen=True, eq=False)
class LinkTruth:
    """Links of a graph that a GNN predicts, with the paths that decide them.

    Attributes:
        graph: The graph, of one or several types.
        model: The GNN, in evaluation mode.
        edge_type: The relation that is predicted; ``None`` in a plain graph.
        train: Links to fit explainers to, shape ``[2, L]``.
        test: Links to explain, shape ``[2, I]``.
        paths: For each of these, its true paths, each a list of edges.
        around: For each, all edges of its computation graph.
    """

    graph: Data | HeteroData
    model: nn.Module
    edge_type: EdgeType | None
    train: Tensor
    test: Tensor
    paths: list[list[list[TypedEdge]]]
    around: list[list[TypedEdge]]

    def every(self, step: int) -> LinkTruth:
        """Takes every ``step``-th link to explain."""
        chosen = slice(None, None, step)
        return replace(self, test=self.test[:, chosen], paths=self.paths[chosen], around=self.around[chosen])

    @property
    def is_plain(self) -> bool:
        """Whether the graph has but one type."""
        return isinstance(self.graph, Data)

    @property
    def end_types(self) -> tuple[str, str]:
        """The types of both ends of a link."""
        source, _, target = self.edge_type or RELATION
        return source, target

    @cached_property
    def edge_index(self) -> dict[EdgeType, Tensor]:
        """The edges by relation."""
        return {RELATION: self.graph.edge_index} if self.is_plain else self.graph.edge_index_dict

    @cached_property
    def _ends(self) -> dict[EdgeType, list[list[int]]]:
        return {key: edges.t().tolist() for key, edges in self.edge_index.items()}

    def ends_of(self, edge: TypedEdge) -> tuple[tuple[str, int], tuple[str, int]]:
        """Returns both ends of an edge, each by type and id."""
        (source, _, target), (one, other) = edge[0], self._ends[edge[0]][edge[1]]
        return (source, one), (target, other)

    def edge_name(self, edge: Any) -> TypedEdge:
        """Names an edge of an explanation by relation and number."""
        return (RELATION, edge) if isinstance(edge, int) else edge
