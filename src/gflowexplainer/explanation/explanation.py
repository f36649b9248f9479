"""An explanation of a graph with one type of nodes: a distribution over connected subgraphs, as PyG has it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.explain.config import MaskType

from gflowexplainer.drawing.case import Case
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.masked import MaskedExplanation
from gflowexplainer.explanation.shown import ShownExplanation
from gflowexplainer.ops.sparse_rows import Fields

if TYPE_CHECKING:
    import networkx


class SubgraphExplanation(ShownExplanation, MaskedExplanation):
    """A PyG explanation that holds a distribution over connected subgraphs.

    ``node_mask`` ``[N, 1]`` and ``edge_mask`` ``[E]`` are the probabilities that a node, or both ends of an edge, lie
    in a subgraph that is sampled. Everything that PyG does with an explanation works: ``validate``, ``threshold``,
    ``get_explanation_subgraph``, ``visualize_graph`` and the metrics.
    """

    KIND = "explanation"

    @classmethod
    def of(
        cls, distribution: SubgraphDistribution, by_type: Mapping[Any, Mapping[str, Any]] | None = None, **fields: Any
    ) -> SubgraphExplanation:
        """Makes an explanation of masks and inputs, as PyG's ``Explanation`` takes them.

        Args:
            distribution: What was sampled.
            by_type: The fields as they are stored, under ``None``.
            **fields: The fields.
        """
        explanation = cls(**fields, **(by_type or {}).get(None, {}))
        explanation._store._mapping = Fields(explanation._store._mapping)
        explanation._distribution = distribution
        return explanation

    def best(self) -> SubgraphExplanation:
        """Returns the first subgraph as an explanation with hard masks: 1 for its nodes and the edges between them."""
        nodes = torch.tensor(self.subgraphs[0].nodes, device=self.edge_index.device)
        inside = torch.zeros(self._num_nodes(), dtype=torch.bool, device=nodes.device)
        inside[nodes] = True
        hard = copy.copy(self)
        hard.node_mask = inside[:, None].float()
        hard.edge_mask = (inside[self.edge_index[0]] & inside[self.edge_index[1]]).float()
        hard._thresholded = True
        return hard

    def visualize_feature_importance(self, *args: Any, **kwargs: Any) -> None:
        """Draws contributions of features as PyG does, where masks of features were asked for."""
        if "_features_shown" not in self._own:
            raise ConfigError(
                "This explanation names nodes and edges, not features. Draw it with 'explanation.draw()', ask for "
                "'explanation.feature_contributions()', or explain with node_mask_type='attributes'."
            )
        super().visualize_feature_importance(*args, **kwargs)

    def show_features(self, mask_type: MaskType | None) -> None:
        """Puts contributions of features into ``node_mask``, as PyG's ``node_mask_type`` asks for.

        ``"attributes"``: of every entry, shape ``[N, F]``. ``"common_attributes"``: of every feature, shape ``[1, F]``.
        Any other type leaves the mask as it is.
        """
        if mask_type == MaskType.attributes:
            mask = torch.zeros_like(self.x)
            for node, feature, value in self.feature_contributions(each=True).rows:
                mask[node, feature] = value
        elif mask_type == MaskType.common_attributes:
            mask = torch.tensor([self.feature_contributions().columns]).to(self.x)
        else:
            return
        self.node_mask, self._features_shown = mask, True

    # What is shown: masks where there are any, so that a thresholded explanation is shown thresholded.

    def node_probability(self) -> np.ndarray:
        """Returns the probability that each node lies in a sampled subgraph, shape ``[N]``."""
        if "node_mask" in self and "_features_shown" not in self._own:
            return self.node_mask.sum(dim=1).double().cpu().numpy()
        values = np.zeros(self._num_nodes())
        for subgraph in self.subgraphs:
            values[list(subgraph.nodes)] += subgraph.probability
        return values

    def edge_probability(self, nodes: Iterable[int]) -> dict[tuple[int, int], float]:
        """Returns the probability that both ends are inside, for each pair of joined ``nodes``, smaller id first."""
        if "edge_index" not in self:
            raise ConfigError("This explanation does not know its graph. Set 'explanation.edge_index'.")
        ends, inside = self.edge_index.cpu().numpy(), np.zeros(self._num_nodes(), dtype=bool)
        inside[list(nodes)] = True
        kept = np.flatnonzero(inside[ends[0]] & inside[ends[1]] & (ends[0] != ends[1]))
        pairs = [(min(u, v), max(u, v)) for u, v in ends[:, kept].T.tolist()]
        values = dict.fromkeys(pairs, 0.0)
        if "edge_mask" in self:
            for pair, value in zip(pairs, self.edge_mask.cpu().numpy()[kept].tolist(), strict=True):
                values[pair] = max(values[pair], value)
            return values
        for subgraph in self.subgraphs:
            members = set(subgraph.nodes)
            for pair in values:
                values[pair] += subgraph.probability * members.issuperset(pair)
        return values

    def _num_nodes(self) -> int:
        number = self.num_nodes
        return max((max(s.nodes) for s in self.subgraphs), default=-1) + 1 if number is None else number

    def to_networkx(self, *, everything: bool = False) -> networkx.Graph:
        """Returns an undirected graph of the nodes that have any probability, or of ``everything``.

        Nodes and edges carry ``probability``, the explained node ``explained=True``.
        """
        try:
            import networkx
        except ImportError as error:
            raise ConfigError("'to_networkx' needs networkx. Install it with 'pip install networkx'.") from error
        graph = networkx.Graph()
        for node, value in enumerate(self.node_probability().tolist()):
            if everything or value > 0:
                graph.add_node(node, probability=value, explained=node == self.explained_node)
        for (u, v), value in self.edge_probability(graph).items():
            graph.add_edge(u, v, probability=value)
        return graph

    def case(self, name: str | None = None, **words: Any) -> Case:
        """Returns what drawings and reports show.

        Args:
            name: What to call it; unique in a report.
            **words: ``labels``, ``classes``, ``feature_names``, ``smiles``, ``words``, ``types``, ``truth``, ``others``
                and ``note``, as in :class:`~gflowexplainer.report.Case`.
        """
        return Case(self.name if name is None else name, self, **words)

    def _knows_its_graph(self) -> bool:
        return "edge_index" in self
