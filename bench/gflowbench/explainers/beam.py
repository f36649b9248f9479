"""Beam search with the same reward as ours: what is reached without learning, by asking the model a lot.

Here any reward can be searched; :class:`~gflowexplainer.GFlowExplainer` with ``inference="search"`` does the same.
"""

from __future__ import annotations

from typing import Any

from gflowbench.explainers.exact_marginals import connected_order, shared_part
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import check_positive
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.estimates import estimate_from_samples
from gflowexplainer.inference.search import search
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.factory import prepare_reward
from gflowexplainer.settings import Settings


class Beam:
    """Searches good subgraphs of each instance.

    Args:
        preset: Name of the settings to begin with.
        width: Subgraphs of each size that go on.
        max_nodes: Size bound; the preset's if not given.
        **changes: Changed settings; those of the reward matter.
    """

    name = "beam"

    def __init__(
        self, *, preset: str = "default", width: int = 16, max_nodes: int | None = None, **changes: Any
    ) -> None:
        check_positive(width=width)
        bound = {} if max_nodes is None else {"max_nodes": max_nodes}
        self.settings = Settings.preset(preset, **bound, **changes)
        self.width = width
        self._consensus: Consensus | None = None

    def fit(self, subject: Subject, seed: int) -> None:
        """Learns what the reward shares between instances, if it shares anything."""
        self._consensus = shared_part(prepare_reward(self.settings.change(seed=seed), subject))

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Searches all instances and scores nodes and edges by the reward of the subgraphs that hold them."""
        instances = subject.instances
        settings = self.settings.change(seed=seed)
        reward = prepare_reward(settings, subject, self._consensus)
        found, log_weight = search(instances, reward, settings.max_nodes, self.width, settings.measure, seed)
        reading = estimate_from_samples(instances, found, log_weight)
        order = connected_order(instances, reading.node, settings.max_nodes)
        return Scores(reading.node, edge_values(instances, reading.neighbor), order=order)
