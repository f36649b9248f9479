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
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.rewards.factory import prepare_reward
from gflowexplainer.settings import Settings


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
        self._consensus: Consensus | None = None

    def fit(self, subject: Subject, seed: int) -> None:
        """Learns what the reward shares between instances, if it shares anything."""
        self._consensus = shared_part(prepare_reward(self.settings.change(seed=seed), subject))

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Enumerates one instance after the other."""
        instances, bound = subject.instances, self.settings.max_nodes
        reward = prepare_reward(self.settings.change(seed=seed), subject, self._consensus)
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


def shared_part(reward: Reward) -> Consensus | None:
    """Returns what a reward has learned from the instances; ``None`` if it learns nothing."""
    return reward.consensus if isinstance(reward, ConsensusReward) else None


def start_of(instances: Instances) -> Tensor | None:
    """Returns where subgraphs begin: at the explained nodes, shape ``[I]``, or anywhere in a graph (``None``)."""
    return instances.center if instances.level == "node" else None


def connected_order(instances: Instances, probability: Tensor, max_nodes: int) -> Tensor:
    """Names nodes of each instance in a connected order, the most probable neighbour first, shape ``[I, K]``."""
    every = torch.arange(len(instances), device=instances.device)
    start = start_of(instances)
    return roll_out(instances, every, start, max_nodes, grow_by(probability), cuts=False).subgraphs.members
