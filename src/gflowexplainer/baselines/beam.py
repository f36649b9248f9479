"""Beam search with the same reward as ours: what is reached without learning, by asking the model a lot.

Level by level, every subgraph of the beam is grown by every neighbour, and the best few of each size go on; graphs are
searched from every node. All subgraphs that were rewarded on the way count, each with its reward, so a beam that is
wide enough gives the exact target distribution.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gflowexplainer.baselines.exact import connected_order, start_of, untrained
from gflowexplainer.baselines.interface import Scores, Subject
from gflowexplainer.baselines.masked_model import check_positive
from gflowexplainer.flow.states import States
from gflowexplainer.instances import Instances
from gflowexplainer.readings import read_samples
from gflowexplainer.rewards.reward import Reward
from gflowexplainer.segments import first_of_each, pointers
from gflowexplainer.settings import Settings
from gflowexplainer.subgraphs import Subgraphs, edge_values, subgraph_keys


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
        self._weights: dict[str, Tensor] | None = None

    def fit(self, subject: Subject, seed: int) -> None:
        """Learns what the reward shares between instances, if it shares anything."""
        self._weights = untrained(subject, self.settings.change(seed=seed)).weights()

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Searches all instances and scores nodes and edges by the reward of the subgraphs that hold them."""
        instances = subject.instances
        reward = untrained(subject, self.settings.change(seed=seed), self._weights).reward
        found, log_reward = search(instances, reward, self.settings.max_nodes, self.width)
        reading = read_samples(instances, found, log_reward)
        order = connected_order(instances, reading.node, self.settings.max_nodes)
        return Scores(reading.node, edge_values(instances, reading.neighbor), order=order)


def search(instances: Instances, reward: Reward, max_nodes: int, width: int) -> tuple[Subgraphs, Tensor]:
    """Grows the ``width`` best subgraphs of each size in each instance.

    Returns:
        All different subgraphs that were looked at, and the log-reward of each, shape ``[B]``.
    """
    every = torch.arange(len(instances), device=instances.device)
    level = States.initial(instances, every, start_of(instances), max_nodes)
    found, rewards = [], []
    if level.rooted:
        found.append(level.subgraphs)
        rewards.append(reward.log_reward(level.subgraphs, level.can_grow))
    while level.frontier.numel():
        level = _grow(level)
        value = reward.log_reward(level.subgraphs, level.can_grow)
        found.append(level.subgraphs)
        rewards.append(value)
        level = level.select(_best(value, level.instance, len(instances), width))
    return Subgraphs.cat(found), torch.cat(rewards)


def _grow(level: States) -> States:
    """Grows every state by every neighbour; of equal subgraphs one is kept."""
    grown = level.children()
    _, first, _ = first_of_each(subgraph_keys(grown.instances, grown.subgraphs))
    return grown.select(first.sort().values)


def _best(value: Tensor, instance: Tensor, count: int, width: int) -> Tensor:
    """Finds the ``width`` largest values of each instance; among equal ones the first."""
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(instance[order], stable=True)]
    first = pointers(torch.bincount(instance, minlength=count))[:-1]
    rank = torch.arange(order.numel(), device=order.device) - first[instance[order]]
    return order[rank < width].sort().values
