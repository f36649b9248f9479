"""A task of links in memory: what a GNN predicts, the paths that decide it, and how edge scores are measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from gflowbench.typed.link_scores import score_links
from gflowexplainer.storage.identity import identity_of

if TYPE_CHECKING:
    from gflowbench.explainers.registry import LinkPeer
    from gflowbench.protocol.cells import ProtocolSettings

EdgeType = tuple[str, str, str]
TypedEdge = tuple[Any, int]
"""A relation, and the number of an edge among those of the relation."""
RELATION = ("node", "edge", "node")
"""What the one relation of a plain graph is called."""
LinkScores = list[dict[TypedEdge, float]]
"""For each link, the score of each edge that has one."""
HIT_DEPTHS = (3, 10)
"""Numbers of first edges among which a true path is looked for, in the tables."""
EDGE = {"mode": "binary_classification", "task_level": "edge", "return_type": "raw"}
"""What the GNNs of links predict, as PyG words it."""


@dataclass(frozen=True, eq=False)
class LinkTask:
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

    def every(self, step: int) -> LinkTask:
        """Takes every ``step``-th link to explain."""
        chosen = slice(None, None, step)
        return replace(self, test=self.test[:, chosen], paths=self.paths[chosen], around=self.around[chosen])

    def __len__(self) -> int:
        return self.test.size(1)

    @property
    def subject(self) -> LinkTask:
        """What explainers are given: they are fitted to :attr:`train` and explain :attr:`test`."""
        return self

    @property
    def num_nodes(self) -> int:
        """Nodes that the links depend on, each counted for every link."""
        return sum(len({end for edge in around for end in self.ends_of(edge)}) for around in self.around)

    def split(self, train_share: float | None, seed: int) -> tuple[LinkTask, LinkTask]:
        """Returns the task twice: links to fit to are others than those to explain anyway."""
        return self, self

    def request(self, links: Tensor) -> dict[str, Any]:
        """Returns what a user passes to explain ``links``: the arguments of ``GFlowExplainer.explain``."""
        return {
            "model": self.model,
            "data": self.graph,
            "edge_label_index": links,
            "edge_type": self.edge_type,
            "model_config": EDGE,
        }

    def identity(self) -> dict[str, str]:
        """Names the GNN, every tensor of the graph, the links to fit to and those to explain."""
        stores = self.graph.to_dict().items()
        graph = {" ".join(name) if isinstance(name, tuple) else name: value for name, value in stores}
        return identity_of(self.model, [graph], index=self.test, training_links=self.train)

    def measure(
        self, explainer: LinkPeer, scores: LinkScores, seed: int, settings: ProtocolSettings
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Measures edge scores, ties broken by the seed; returns values by name, and no hard explanations."""
        auc, hits = score_links(scores, self, seed)
        return {"auc_edge": auc, **{f"path_hit_{depth}": hits[depth] for depth in HIT_DEPTHS}}, {}

    def facts(self, settings: ProtocolSettings) -> dict[str, Any]:
        """Says how many links there are."""
        return {"instances": len(self), "training_links": self.train.size(1)}

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
