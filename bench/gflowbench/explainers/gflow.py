"""GFlowExplainer itself, as users call it, behind the interface that all explainers are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowexplainer import ExplanationList, GFlowExplainer, SubgraphExplanation
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.sampling import grow_by, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.settings import Settings


class GFlow:
    """A fitted :class:`~gflowexplainer.GFlowExplainer`, which then explains any instances of its model.

    Args:
        preset: Name of the settings to begin with.
        max_nodes: Size bound; the preset's if not given.
        fitting: Further arguments of its ``fit``, such as ``folder``.
        **options: Further arguments of :class:`~gflowexplainer.GFlowExplainer`.
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        max_nodes: int | None = None,
        fitting: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.name = "gflow" if preset == "default" else f"gflow-{preset}"
        self._fitting = {"progress": False, **(fitting or {})}
        self._options = {"preset": preset, **({} if max_nodes is None else {"max_nodes": max_nodes}), **options}
        self.explainer = GFlowExplainer(**self._options)
        self.explanations: Sequence[SubgraphExplanation] = []

    @property
    def settings(self) -> Settings:
        """Settings of the explainer."""
        return self.explainer.settings

    def fit(self, subject: Subject, seed: int) -> None:
        """Fits the explainer to the instances of ``subject``."""
        self.explainer = GFlowExplainer(**self._options, seed=seed)
        self.explainer.fit(**subject.request, **self._fitting)

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores nodes and edges by their probability: the masks of each explanation, read off at its instance."""
        if not self.explainer.is_fitted:
            raise ConfigError("This explainer has not been fitted. Call fit first.")
        self.explanations = self.explainer.explain(**subject.request, progress=False)
        return scores_of(self.explanations, subject, self.explainer.settings.max_nodes)

    def answer(self, subject: Subject) -> None:
        """Explains as users do, up to the masks; without the order of nodes that some metrics need."""
        look_at(self.explainer.explain(**subject.request, progress=False))


def look_at(found: ExplanationList) -> None:
    """Writes the masks of explanations out, as one sparse block each."""
    assert found.node_mask.size(0) == found.edge_mask.size(0) == len(found)


def scores_of(explanations: Sequence[SubgraphExplanation], subject: Subject, max_nodes: int) -> Scores:
    """Reads the masks of explanations off at the nodes and edges of their instances."""
    instances = subject.instances
    nodes = instances.node_id.split(instances.node_counts.tolist())
    edges = instances.edge_id.split(instances.edge_counts.tolist())
    node = torch.cat([one.node_mask[ids, 0] for one, ids in zip(explanations, nodes, strict=True)]).double()
    edge = torch.cat([one.edge_mask[ids] for one, ids in zip(explanations, edges, strict=True)]).double()
    return Scores(node, edge, order=connected_order(instances, node, max_nodes))


def connected_order(instances: Instances, probability: Tensor, max_nodes: int) -> Tensor:
    """Names nodes of each instance in a connected order, the most probable neighbour first, shape ``[I, K]``."""
    every = torch.arange(len(instances), device=instances.device)
    start = instances.center if instances.level == "node" else None
    return roll_out(instances, every, start, max_nodes, grow_by(probability), cuts=False).subgraphs.members
