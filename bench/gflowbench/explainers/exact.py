"""A ceiling: the target distribution itself, by enumeration of every connected subgraph. No learning, no sampling.

What a perfect flow network would sample from. It says what the reward is worth, whoever maximises it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowexplainer.errors import EnumerationError
from gflowexplainer.flow.exact import enumerate_subgraphs, exact_marginals
from gflowexplainer.flow.sampling import grow_by, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.exact_target import target_distribution
from gflowexplainer.settings import Settings
from gflowexplainer.training.trainer import Trainer


class Exact:
    """Scores nodes and edges by their exact probability under the target distribution.

    Args:
        preset: Name of the settings to begin with.
        limit: Connected subgraphs of one instance above which
            :class:`~gflowexplainer.errors.EnumerationError` is raised.
        max_nodes: Size bound; the preset's if not given.
        **changes: Changed settings; those of the reward matter.
    """

    name = "exact"

    def __init__(
        self, *, preset: str = "default", limit: int = 200_000, max_nodes: int | None = None, **changes: Any
    ) -> None:
        bound = {} if max_nodes is None else {"max_nodes": max_nodes}
        self.settings = Settings.preset(preset, **bound, **changes)
        self.limit = limit
        self._weights: dict[str, Tensor] | None = None

    def fit(self, subject: Subject, seed: int) -> None:
        """Learns what the reward shares between instances, if it shares anything."""
        self._weights = untrained(subject, self.settings.change(seed=seed)).weights()

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Enumerates one instance after the other."""
        instances, bound = subject.instances, self.settings.max_nodes
        reward = untrained(subject, self.settings.change(seed=seed), self._weights).reward
        start = start_of(instances)
        node = torch.zeros(instances.num_nodes, dtype=torch.double, device=instances.device)
        neighbor = torch.zeros(instances.neighbor.numel(), dtype=torch.double, device=instances.device)
        for index in torch.arange(len(subject), device=instances.device).split(1):
            try:
                enumeration = enumerate_subgraphs(
                    instances, index, None if start is None else start[index], bound, limit=self.limit
                )
            except EnumerationError as error:
                raise EnumerationError(f"Instance {int(subject.index[index])} is too large: {error}") from error
            more = exact_marginals(enumeration, target_distribution(enumeration, reward, self.settings.measure))
            node += more[0]
            neighbor += more[1]
        return Scores(node, edge_values(instances, neighbor), order=connected_order(instances, node, bound))


def untrained(subject: Subject, settings: Settings, weights: dict[str, Tensor] | None = None) -> Trainer:
    """Prepares what would train a flow network: all that its reward learns from the instances, and no more.

    Args:
        subject: The instances.
        settings: Settings of the flow network.
        weights: What the reward learned on other instances.
    """
    return Trainer(
        subject.predictor,
        subject.instances,
        settings,
        embedding=subject.embedding,
        evidence=subject.node_probabilities,
        target=subject.target,
        weights=weights,
    )


def start_of(instances: Instances) -> Tensor | None:
    """Gives where subgraphs begin: at the explained nodes, shape ``[I]``, or anywhere in a graph (``None``)."""
    return instances.center if instances.level == "node" else None


def connected_order(instances: Instances, probability: Tensor, max_nodes: int) -> Tensor:
    """Names nodes of each instance in a connected order, the most probable neighbour first, shape ``[I, K]``."""
    every = torch.arange(len(instances), device=instances.device)
    start = start_of(instances)
    return roll_out(instances, every, start, max_nodes, grow_by(probability), cuts=False).subgraphs.members
