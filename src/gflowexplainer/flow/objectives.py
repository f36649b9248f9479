r"""What is minimised, as pure functions of log-flows, log-rewards and numbers of parents.

Every state may stop, so each visited state :math:`s_t` of a rollout, not only the last, gives an estimate of
the log-partition function:

.. math::
    \zeta_t = \log R(s_t) - \log P_F(\mathit{stop} \mid s_t)
              - \sum_{i < t} \big( \log P_F(s_{i+1} \mid s_i) - \log \mu(s_i \to s_{i+1}) \big)

where :math:`\mu` is the :mod:`~gflowexplainer.flow.measure` of the step: for the uniform one, the probability of a
uniform backward policy over the parents of the state stepped to.

At the exact solution all :math:`\zeta` of an instance equal :math:`\log Z`. Four objectives differ only in what they
compare :math:`\zeta_t` with: the next state's (detailed balance), the mean of its rollout (sub-trajectory
balance), the mean of its instance (log-partition variance), or a learned :math:`\log Z` (trajectory balance).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.ops.segments import segment_sum


@dataclass(frozen=True)
class Loss:
    """A sum of squared errors and the number of terms that it is to be divided by, both scalars.

    Kept apart, so that several processes add up both and divide once.
    """

    total: Tensor
    terms: Tensor

    @classmethod
    def of(cls, total: Tensor, terms: int | Tensor) -> Loss:
        """Puts a sum and a number of terms together."""
        return cls(total, torch.as_tensor(terms, device=total.device))

    @property
    def mean(self) -> Tensor:
        """The sum divided by the number of terms; 0 where there are none."""
        return self.total / self.terms.clamp(min=1)


@dataclass(frozen=True)
class VisitedFlows:
    """Log-flows at the ``S`` visits of ``R`` rollouts to states.

    Attributes:
        out: Logarithm of everything that leaves a state, stopping included, shape ``[S]``.
        stop: Log-flow of stopping, shape ``[S]``.
        taken: Log-flow of the action that was taken; meaningless where the rollout ended, shape ``[S]``.
        inflow: Logarithm of everything that enters, ``-inf`` at a start state, shape ``[S]``; only flow
            matching needs it.
        log_reward: Shape ``[S]``; meaningless at an empty state.
        can_stop: Which states may end a rollout: all but empty ones, shape ``[S]``.
        measure: What the measure gives the step that was taken, as a logarithm; meaningless at the end, ``[S]``.
        successor: Next state of the rollout, ``-1`` at the end, shape ``[S]``.
        rollout: Shape ``[S]``.
        depth: Steps since the start of the rollout, shape ``[S]``.
        group: Which rollouts share one Z: those of one start node or, without root, of one instance, ``[R]``.
    """

    out: Tensor
    stop: Tensor
    taken: Tensor
    inflow: Tensor | None
    log_reward: Tensor
    can_stop: Tensor
    measure: Tensor
    successor: Tensor
    rollout: Tensor
    depth: Tensor
    group: Tensor


def flow_matching(flows: VisitedFlows) -> Loss:
    """Flow matching (equation 18) in log space: what enters equals what leaves, and stopping equals the reward."""
    assert flows.inflow is not None
    inside = torch.isfinite(flows.inflow.detach())
    balance = (flows.inflow[inside] - flows.out[inside]).square()
    stops = flows.can_stop
    end = (flows.stop[stops] - flows.log_reward[stops]).square()
    return Loss.of(balance.sum() + end.sum(), flows.out.numel())


def raw_flow_matching(flows: VisitedFlows) -> Loss:
    """Flow matching as printed (equation 18): squared differences of the flows themselves, summed a rollout."""
    assert flows.inflow is not None
    inside = torch.isfinite(flows.inflow.detach())
    balance = (flows.inflow[inside].exp() - flows.out[inside].exp()).square()
    ends = flows.successor < 0
    end = (flows.stop[ends].exp() - flows.log_reward[ends].exp()).square()
    return Loss.of(balance.sum() + end.sum(), flows.group.numel())


def log_partition_estimates(flows: VisitedFlows) -> tuple[Tensor, Tensor]:
    r"""Returns :math:`\zeta_t` for every visited state.

    Returns:
        Estimates on a grid of rollouts and depths, shape ``[R, T]``, and which places of it hold a state.
    """
    shape = (flows.group.numel(), int(flows.depth.max()) + 1)
    goes_on = torch.nonzero(flows.successor >= 0).flatten()
    forward = flows.taken[goes_on] - flows.out[goes_on]
    place = (flows.rollout[goes_on], flows.depth[goes_on] + 1)
    steps = flows.out.new_zeros(shape).index_put(place, forward - flows.measure[goes_on].to(forward.dtype))
    stops = flows.can_stop
    ends = (flows.rollout[stops], flows.depth[stops])
    stopping = flows.log_reward[stops] - (flows.stop[stops] - flows.out[stops])
    estimates = flows.out.new_zeros(shape).index_put(ends, stopping) - steps.cumsum(dim=1)
    visited = torch.zeros(shape, dtype=torch.bool, device=estimates.device)
    visited[ends] = True
    return estimates, visited


def detailed_balance(flows: VisitedFlows) -> Loss:
    """Modified detailed balance: the estimates before and after each step are equal."""
    estimates, visited = log_partition_estimates(flows)
    gap = (estimates[:, 1:] - estimates[:, :-1])[visited[:, 1:] & visited[:, :-1]]
    return Loss.of(gap.square().sum(), gap.numel())


def subtrajectory_balance(flows: VisitedFlows) -> Loss:
    """Sub-trajectory balance over all pairs of states of a rollout, which is the variance of its estimates."""
    estimates, visited = log_partition_estimates(flows)
    count = visited.sum(dim=1, keepdim=True)
    mean = (estimates * visited).sum(dim=1, keepdim=True) / count.clamp(min=1)
    return Loss.of(((estimates - mean).square() * visited).sum(), visited.sum())


def log_partition_variance(flows: VisitedFlows) -> Loss:
    """Variance of the estimates within each instance: trajectory balance without having to learn Z."""
    estimates, visited = log_partition_estimates(flows)
    group = flows.group[:, None].expand_as(visited)[visited]
    values = estimates[visited]
    number = int(flows.group.max()) + 1
    count = torch.bincount(group, minlength=number).clamp(min=1)
    mean = segment_sum(values, group, number) / count
    return Loss.of((values - mean.index_select(0, group)).square().sum(), values.numel())


def trajectory_balance(flows: VisitedFlows, log_partition: Tensor, prefixes: bool = True) -> Loss:
    """Trajectory balance (equation 20).

    Args:
        flows: Visited flows.
        log_partition: Learned log Z of each rollout, shape ``[R]`` or a scalar.
        prefixes: Whether every visited state counts as an end of its own; otherwise only the last of a rollout.
    """
    estimates, visited = log_partition_estimates(flows)
    if not prefixes:
        visited = torch.zeros_like(visited)
        ends = flows.successor < 0
        visited[flows.rollout[ends], flows.depth[ends]] = True
    gap = estimates - log_partition.reshape(-1, 1)
    return Loss.of(gap[visited].square().sum(), visited.sum())
