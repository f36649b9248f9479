"""Search for good subgraphs under a reward, size by size: what is reached without training anything.

Every subgraph of the beam is grown by every neighbour, and a few of each size go on: the best ones, and some of the
others by chance. Under the growth measure, what goes on by chance stands for what does not: each carries the inverse of
its chance along, so that in expectation over seeds every connected subgraph has the weight that reward and measure give
it, however narrow the beam. One that is wide enough to hold everything gives the exact target distribution.

Nothing tells how many ways lead to a subgraph without growing them, so under the uniform measure only the best go on.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gflowexplainer.choices import Measure
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, place_keys
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import pointers, segment_logsumexp, segment_max
from gflowexplainer.ops.sorting import first_of_each, order_of
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.base import Reward


class Kept(NamedTuple):
    """Which candidates go on, ``[Q]`` positions in ascending order, and the log-chance that each had, ``[Q]``."""

    which: Tensor
    log_chance: Tensor


@torch.no_grad()
def search(
    instances: Instances, reward: Reward, max_nodes: int, width: int, measure: str = "uniform", seed: int = 0
) -> tuple[Subgraphs, Tensor]:
    """Grows ``width`` subgraphs of each size in each instance.

    Args:
        instances: The instances.
        reward: What they are searched for.
        max_nodes: Size bound.
        width: Subgraphs of each size that go on.
        measure: ``"growth"``: half of them are the best, half are drawn. ``"uniform"``: all of them are the best.
        seed: Names the draws.

    Returns:
        All different subgraphs that went on and have ``reward.min_nodes`` nodes, or cannot have so many, and the
        log-weight of each under reward and measure, ``[B]``.
    """
    growth = measure == Measure.growth
    every = torch.arange(len(instances), device=instances.device)
    start = None if instances.level == "graph" else instances.center
    level = States.initial(instances, every, start, max_nodes, cuts=False)
    passing = torch.zeros(len(level), dtype=torch.double, device=instances.device)
    found, weights = [], []

    def keep(weight: Tensor) -> None:
        large = (level.size >= reward.min_nodes) | ~level.can_grow
        found.append(level.subgraphs[large])
        weights.append(weight[large])

    if level.rooted:
        keep(reward.log_reward(level.subgraphs, level.can_grow).double())
    while level.frontier.numel():
        entry, arriving = _different(level, passing)
        value = _log_rewards(reward, level)[entry]
        instance = level.instance[level.frontier_state[entry]]
        if growth:
            size = int(level.size.max())
            draw = uniform(seed, Stream.searching, instances.own_key, size)
            kept = _best_and_drawn(value, arriving + value, instance, draw, width)
        else:
            best = _best(value, instance, len(instances), width)
            kept = Kept(best, torch.zeros_like(value[best]))
        level, passing = level.step(entry[kept.which]), arriving[kept.which] - kept.log_chance
        keep(value[kept.which] + (passing if growth else 0))
    return Subgraphs.cat(found), torch.cat(weights)


def _different(level: States, passing: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the different subgraphs that states grow into, one frontier entry for each, ``[Q]`` in ascending order.

    Returns:
        The entries, and the log-probability that random growth passes each subgraph, from that of the states,
        ``passing``, shape ``[Q]``.
    """
    state = level.frontier_state
    keys = place_keys(level.instances, level.subgraphs)[state] + level.instances.key[level.frontier]
    _, first, group = first_of_each(keys)
    step = (passing - level.frontier_counts.clamp(min=1).double().log())[state]
    arriving = segment_logsumexp(step, group, first.numel())
    order = order_of(first)
    return first[order], arriving[order]


def _log_rewards(reward: Reward, level: States) -> Tensor:
    """Returns the log-reward of every state with each of its frontier nodes, shape ``[F]``."""
    if int(level.size.max()) + 1 < reward.min_nodes:
        # Whether so little could be more has to be seen.
        grown = level.children()
        return reward.log_reward(grown.subgraphs, grown.can_grow).double()
    return reward.log_reward_grown(level.subgraphs, level.frontier_state, level.frontier).double()


def _best(value: Tensor, instance: Tensor, count: int, width: int) -> Tensor:
    """Finds the ``width`` largest values of each instance; among equal ones the first."""
    order, rank = _ranked(value, instance, count)
    return order[rank < width].sort().values


def _best_and_drawn(value: Tensor, log_weight: Tensor, instance: Tensor, draw: Tensor, width: int) -> Kept:
    """Keeps the best half of ``width`` candidates of each instance, and draws the other half from what is left.

    Chances are in proportion to weights, and 1 where that would be more than 1, so that what is left over of the width
    is shared by the others. One number for each instance draws all of them, at equal steps along their chances.

    Args:
        value: What is best, shape ``[Q]``.
        log_weight: What chances are in proportion to, shape ``[Q]``.
        instance: Instance of each candidate, shape ``[Q]``.
        draw: A random number in (0, 1) for each instance, shape ``[I]``.
        width: Candidates of each instance that are kept.
    """
    count, half = draw.numel(), width - width // 2
    best = _best(value, instance, count, half)
    rest = torch.ones_like(value, dtype=torch.bool)
    rest[best] = False
    rest = torch.nonzero(rest).flatten()
    order, rank = _ranked(log_weight[rest], instance[rest], count)
    owner = instance[rest][order]
    top = segment_max(log_weight[rest], instance[rest], count)
    weight = (log_weight[rest][order] - top[owner]).exp()
    # What is left of the weights, and of the width, from each candidate on: heaviest first.
    sums = torch.cat([weight.new_zeros(1), weight.cumsum(0)])
    bounds = pointers(torch.bincount(owner, minlength=count))
    begin, end = bounds[:-1], bounds[1:]
    left, room = (sums[end[owner]] - sums[:-1]).clamp(min=1e-300), (width - half - rank).clamp(min=0)
    certain = (weight * room >= left) & (room > 0)
    # Those that are certain stand in front; the first that is not tells the share of all that follow.
    sure = torch.bincount(owner[certain], minlength=count)
    first = (begin + sure).clamp(max=max(weight.numel() - 1, 0))
    share = room[first] / left[first] if weight.numel() else draw.new_zeros(count)
    chance = torch.where(certain, 1.0, (weight * share[owner]).clamp(max=1.0))
    steps = torch.cat([chance.new_zeros(1), chance.cumsum(0)])
    shift = (draw - steps[begin])[owner]
    before, after = steps[:-1] + shift, steps[1:] + shift
    taken = torch.nonzero(certain | (after.floor() > before.floor())).flatten()
    which = torch.cat([best, rest[order[taken]]])
    log_chance = torch.cat([chance.new_zeros(best.numel()), chance[taken].clamp(min=1e-300).log()])
    ascending = order_of(which)
    return Kept(which[ascending], log_chance[ascending])


def _ranked(value: Tensor, instance: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Orders candidates by instance, the largest values first and of equal ones the first, and numbers them in each."""
    order = torch.argsort(value, descending=True, stable=True)
    if count == 1:
        return order, torch.arange(order.numel(), device=order.device)
    order = order[torch.argsort(instance[order], stable=True)]
    first = pointers(torch.bincount(instance, minlength=count))[:-1]
    return order, torch.arange(order.numel(), device=order.device) - first[instance[order]]
