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

from gflowexplainer.flow.cpu_record import CpuRecord
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.estimates import NEGLIGIBLE, Estimates
from gflowexplainer.ops.deferred import Deferred
from gflowexplainer.ops.numpy_segments import boundaries, counted, found_in, sum_exp, ticked_off
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.consensus_reward import ConsensusReward

Array = NDArray[Any]
_ENTRIES_AT_ONCE = 1 << 20


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
        record: What the rollouts did.
    """

    def __init__(self, record: CpuRecord) -> None:
        self.record, self.instances = record, record.instances
        self.action, self.stop = record.action.astype(np.float64), record.stop.astype(np.float64)
        self.instance, self.ways = record.instance, record.ways
        self.owner = counted(self.ways.size).repeat(self.ways)
        self.out = np.logaddexp(self.stop, sum_exp(self.action, boundaries(self.ways), self.owner))
        self.end = record.state[record.last]
        self.of_rollout = self.instance[self.end]
        self.count = np.bincount(self.of_rollout, minlength=len(self.instances))

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """The different states that rollouts ended in, ``[B]``, and which of them each did, ``[R]``."""
        return ticked_off(self.end, self.ways.size)

    @cached_property
    def _subgraphs(self) -> Subgraphs:
        end = self._ends[0]
        return Subgraphs(torch.from_numpy(self.instance[end]), torch.from_numpy(self.record.members[end]))

    def find_effective_sizes(self, reward: Reward) -> Callable[[], Tensor]:
        """Returns what computes the :meth:`SampleWeights.effective_sizes` when somebody looks at them.

        A reward that evaluates the model is computed now: later the model may be another one. Rollouts of several
        instances are not kept for it, only their weights; those of a single one are few.
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
        record = self.record
        taken = self.stop[record.state]
        if self.action.size:
            taken = np.where(record.goes_on, self.action[np.maximum(record.chosen, 0)], taken)
        steps = np.where(record.goes_on, -np.log(np.maximum(self.ways, 1))[record.state], 0.0)
        along = steps - (taken - self.out[record.state])
        summed = np.bincount(record.rollout, weights=along, minlength=self.end.size)
        return SampleWeights(self._subgraphs, grows, which, summed, self.of_rollout, self.count)

    def estimates(self) -> Estimates:
        """Returns the policy's own estimates; see :func:`~gflowexplainer.inference.estimates.estimate_from_policy`.

        Rollouts of several instances are not kept to list their subgraphs later; those of a single one are few.
        """
        listed = Deferred(self._listed) if len(self.instances) == 1 else Deferred.of(self._listed())
        return Estimates(listed, *map(torch.from_numpy, self._marginals()))

    def _listed(self) -> tuple[Subgraphs, Tensor]:
        """Lists the different subgraphs that rollouts ended in, and the probability of each."""
        end, which = self._ends
        share = np.bincount(which) / self.count.take(self.instance.take(end))
        return self._subgraphs, torch.from_numpy(share)

    def _marginals(self) -> tuple[Array, Array]:
        """See :func:`~gflowexplainer.inference.estimates.expected_marginals`."""
        instances, number, record = self.instances, self.instances.num_nodes, self.record
        visits = np.bincount(record.state, minlength=self.ways.size) / np.maximum(self.count, 1)[self.instance]
        joins = np.exp(self.action - self.out[self.owner])
        joins *= visits[self.owner]
        node: Array = np.bincount(record.frontier, weights=joins, minlength=number)
        if record.rooted:
            root = np.zeros(number)
            root[record.members[self.end, 0]] = 1
            node = node + root
        keys = instances.array("neighbor_key")
        edge = np.zeros(keys.size)
        matter = (joins > NEGLIGIBLE).nonzero()[0]
        for begin in range(0, matter.size, _ENTRIES_AT_ONCE):
            part = matter[begin : begin + _ENTRIES_AT_ONCE]
            members = record.members.take(self.owner[part], axis=0)[:, : record.largest]
            entry, slot = (members >= 0).nonzero()
            wanted = record.frontier[part][entry] * number + members[entry, slot]
            position, found = found_in(keys, wanted, number * number)
            weights = joins[part][entry[found]]
            edge += np.bincount(position[found], weights=weights, minlength=edge.size)
        # An edge has been counted from the end that joined later; now from both.
        some = edge.nonzero()[0]
        row, neighbor = instances.array("neighbor_row"), instances.array("neighbor")
        back, _ = found_in(keys, neighbor[some] * number + row[some])
        both = edge.copy()
        both[back] += edge[some]
        return node, both
