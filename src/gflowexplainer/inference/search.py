"""Beam search for good subgraphs under a reward: what is reached without learning, by asking for many rewards.

Level by level, every subgraph of the beam is grown by every neighbour, and the best few of each size go on; graphs are
searched from every node. All subgraphs that were rewarded on the way count, each with its reward and with what the
measure gives the ways to it inside the beam, so a beam that is wide enough gives the exact target distribution.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, subgraph_keys
from gflowexplainer.ops.segments import pointers, segment_logsumexp
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.base import Reward


@torch.no_grad()
def search(
    instances: Instances, reward: Reward, max_nodes: int, width: int, measure: str = "uniform"
) -> tuple[Subgraphs, Tensor]:
    """Grows the ``width`` best subgraphs of each size in each instance.

    Returns:
        All different subgraphs that were looked at, and the log-weight of each under reward and measure, ``[B]``.
    """
    every = torch.arange(len(instances), device=instances.device)
    level = States.initial(instances, every, None if instances.level == "graph" else instances.center, max_nodes)
    passing = torch.zeros(len(level), dtype=torch.double, device=instances.device)
    found, weights = [], []
    if level.rooted:
        found.append(level.subgraphs)
        weights.append(reward.log_reward(level.subgraphs, level.can_grow).double())
    while level.frontier.numel():
        level, passing = _grow(level, passing)
        value = reward.log_reward(level.subgraphs, level.can_grow).double()
        found.append(level.subgraphs)
        weights.append(value + passing if measure == "growth" else value)
        best = _best(value, level.instance, len(instances), width)
        # What the beam leaves out must not make larger subgraphs count less: those kept stand for all of their size.
        left = segment_logsumexp(passing[best], level.instance[best], len(instances))
        whole = segment_logsumexp(passing, level.instance, len(instances))
        level, passing = level.select(best), (passing - (left - whole)[level.instance])[best]
    return Subgraphs.cat(found), torch.cat(weights)


def _grow(level: States, passing: Tensor) -> tuple[States, Tensor]:
    """Grows every state by every neighbour; of equal subgraphs one is kept.

    Returns:
        The grown states, and the log-probability that random growth inside the beam passes each, from that of
        the states grown, ``passing``.
    """
    grown = level.children()
    keys, first, group = first_of_each(subgraph_keys(grown.instances, grown.subgraphs))
    step = (passing - level.frontier_counts.clamp(min=1).double().log())[level.frontier_state]
    arriving = segment_logsumexp(step, group, keys.numel())
    order = torch.argsort(first)
    return grown.select(first[order]), arriving[order]


def _best(value: Tensor, instance: Tensor, count: int, width: int) -> Tensor:
    """Finds the ``width`` largest values of each instance; among equal ones the first."""
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(instance[order], stable=True)]
    first = pointers(torch.bincount(instance, minlength=count))[:-1]
    rank = torch.arange(order.numel(), device=order.device) - first[instance[order]]
    return order[rank < width].sort().values
