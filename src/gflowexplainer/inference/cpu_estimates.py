"""Estimates from the policy's samples on a CPU, by NumPy; what :mod:`~gflowexplainer.inference.estimates` computes.

For one instance these are a few hundred numbers, and torch would take most of its time to begin. States that rollouts
of the growth measure ended in differ from one another, so no sample has to be compared with another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.choices import Measure
from gflowexplainer.flow.sampling import Rollouts
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.estimates import NEGLIGIBLE, Estimates
from gflowexplainer.ops.numpy_segments import found_in, sum_exp, ticked_off
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.settings import Settings

Array = NDArray[Any]
_ENTRIES_AT_ONCE = 1 << 20


def on_cpu(rollouts: Rollouts, settings: Settings) -> bool:
    """Says whether :class:`CpuEstimates` can read these rollouts: none of their states is there twice."""
    states = rollouts.states
    return (
        states.frontier.device.type == "cpu"
        and settings.measure == Measure.growth
        and states.instances.other_end is None
        and rollouts.flows is not None
    )


@dataclass(frozen=True)
class SampleWeights:
    """How probable ``R`` samples are under the policy, to be compared with a reward; it holds no rollouts.

    Attributes:
        subgraphs: The ``B`` different subgraphs that were sampled.
        grows: Whether each could become larger, shape ``[B]``.
        which: Subgraph of each sample, shape ``[R]``.
        along: Logarithm of the target's share in the way to each sample over the policy's, shape ``[R]``.
        instance: Instance of each sample, shape ``[R]``.
        count: Samples of each instance, shape ``[I]``.
    """

    subgraphs: Subgraphs
    grows: Tensor
    which: Array
    along: Array
    instance: Array
    count: Array

    @torch.no_grad()
    def effective_sizes(self, reward: Reward) -> Tensor:
        """Returns the effective sample size of each instance under a reward, shape ``[I]``."""
        log_reward = reward.log_reward(self.subgraphs, self.grows).double().numpy().take(self.which)
        weight = log_reward + self.along
        top = np.full(self.count.size, -np.inf)
        np.maximum.at(top, self.instance, weight)
        share = np.exp(weight - top.take(self.instance))
        total, square = (np.bincount(self.instance, weights=w, minlength=top.size) for w in (share, share * share))
        return torch.from_numpy(np.where(self.count > 0, total * total / np.maximum(square, 1e-300), 0.0))


class CpuEstimates:
    """Reads rollouts that followed a policy, without exploration, of every instance.

    Args:
        rollouts: The rollouts.
    """

    def __init__(self, rollouts: Rollouts) -> None:
        states, self.rollouts = rollouts.states, rollouts
        assert rollouts.flows is not None
        self.instances = states.instances
        self.action, self.stop = (flow.numpy().astype(np.float64) for flow in rollouts.flows)
        self.instance, self.members = states.instance.numpy(), states.members.numpy()
        self.ptr, self.frontier = states.frontier_ptr.numpy(), states.frontier.numpy()
        self.ways = self.ptr[1:] - self.ptr[:-1]
        self.owner = np.arange(self.ways.size).repeat(self.ways)
        self.out = np.logaddexp(self.stop, sum_exp(self.action, self.ptr, self.owner))
        self.state = rollouts.state.numpy()
        self.end = self.state.take(rollouts.last.numpy())
        self.of_rollout = self.instance.take(self.end)
        self.count = np.bincount(self.of_rollout, minlength=len(self.instances))

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """The different states that rollouts ended in, ``[B]``, and which of them each did, ``[R]``."""
        return ticked_off(self.end, self.ways.size)

    @cached_property
    def _subgraphs(self) -> Subgraphs:
        return self.rollouts.states.subgraphs[torch.from_numpy(self._ends[0])]

    def find_effective_sizes(self, reward: Reward) -> Callable[[], Tensor]:
        """Returns what computes the :meth:`SampleWeights.effective_sizes` when somebody looks at them.

        A reward that asks the model is asked now: later it may be another one. Rollouts of several instances are not
        kept for it, only their weights; those of a single one are few.
        """
        if isinstance(reward, ConsensusReward) and len(self.instances) == 1:
            return lambda: self._weights().effective_sizes(reward)
        weights = self._weights()
        if isinstance(reward, ConsensusReward):
            return partial(weights.effective_sizes, reward)
        known = weights.effective_sizes(reward)
        return lambda: known

    def _weights(self) -> SampleWeights:
        end, which = self._ends
        grows = torch.from_numpy(self.ways.take(end) > 0)
        ends = self.rollouts.successor.numpy() < 0
        taken = self.stop.take(self.state)
        if self.action.size:
            taken = np.where(ends, taken, self.action.take(np.maximum(self.rollouts.chosen.numpy(), 0)))
        steps = np.where(ends, 0.0, -np.log(np.maximum(self.ways, 1))[self.state])
        along = steps - (taken - self.out.take(self.state))
        summed = np.bincount(self.rollouts.rollout.numpy(), weights=along, minlength=self.end.size)
        return SampleWeights(self._subgraphs, grows, which, summed, self.of_rollout, self.count)

    def estimates(self) -> Estimates:
        """Returns the policy's own estimates; see :func:`~gflowexplainer.inference.estimates.estimate_from_policy`."""
        end, which = self._ends
        share = np.bincount(which) / self.count.take(self.instance.take(end))
        return Estimates(self._subgraphs, torch.from_numpy(share), *map(torch.from_numpy, self._marginals()))

    def _marginals(self) -> tuple[Array, Array]:
        """See :func:`~gflowexplainer.inference.estimates.expected_marginals`."""
        instances, number = self.instances, self.instances.num_nodes
        visits = np.bincount(self.state, minlength=self.ways.size) / np.maximum(self.count, 1).take(self.instance)
        joins = np.exp(self.action - self.out.take(self.owner)) * visits.take(self.owner)
        node: Array = np.bincount(self.frontier, weights=joins, minlength=number)
        if self.rollouts.states.rooted:
            root = np.zeros(number)
            root[self.members[self.end, 0]] = 1
            node = node + root
        keys = instances.neighbor_key.numpy()
        edge = np.zeros(keys.size)
        matter = (joins > NEGLIGIBLE).nonzero()[0]
        used = int(self.rollouts.states.size.numpy().max())
        for begin in range(0, matter.size, _ENTRIES_AT_ONCE):
            part = matter[begin : begin + _ENTRIES_AT_ONCE]
            members = self.members.take(self.owner.take(part), axis=0)[:, :used]
            entry, slot = (members >= 0).nonzero()
            wanted = self.frontier.take(part).take(entry) * number + members[entry, slot]
            position, found = found_in(keys, wanted)
            weights = joins.take(part).take(entry[found])
            edge += np.bincount(position[found], weights=weights, minlength=edge.size)
        # An edge has been counted from the end that joined later; now from both.
        counted = edge.nonzero()[0]
        row, neighbor = instances.neighbor_row.numpy(), instances.neighbor.numpy()
        back, _ = found_in(keys, neighbor.take(counted) * number + row.take(counted))
        both = edge.copy()
        both[back] += edge.take(counted)
        return node, both
