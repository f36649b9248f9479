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
from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.flow.measure import log_steps
from gflowexplainer.flow.sampling import Rollouts
from gflowexplainer.ops.segments import segment_sum


@dataclass(frozen=True)
class Loss:
    """A sum of squared errors, a scalar, and the number of terms that it is to be divided by.

    Kept apart, so that several processes add up both and divide once.
    """

    total: Tensor
    terms: int

    @property
    def mean(self) -> Tensor:
        """The sum divided by the number of terms; 0 where there are none."""
        return self.total / max(self.terms, 1)


@dataclass(frozen=True)
class Visits:
    """The ``S`` visits of ``R`` rollouts to states, by depth.

    What is found from them once, such as which of them go on, is kept: several updates look at the same visits.

    Attributes:
        log_reward: Shape ``[S]``; meaningless at an empty state.
        can_stop: Which states may end a rollout: all but empty ones, shape ``[S]``.
        measure: What the measure gives the step that was taken, as a logarithm; meaningless at the end, ``[S]``.
        successor: Next visit of the rollout, ``-1`` at the end, shape ``[S]``.
        rollout: Shape ``[S]``.
        depth: Steps since the start of the rollout, shape ``[S]``.
        group: Which rollouts share one Z: those of one start node or, without root, of one instance, ``[R]``.
    """

    log_reward: Tensor
    can_stop: Tensor
    measure: Tensor
    successor: Tensor
    rollout: Tensor
    depth: Tensor
    group: Tensor

    @classmethod
    def of(cls, rollouts: Rollouts, log_reward: Tensor, measure: str, parents: str) -> Visits:
        """Describes what rollouts did.

        Args:
            rollouts: The rollouts.
            log_reward: Log-reward of the states they visited, shape ``[U]``.
            measure: See :func:`~gflowexplainer.flow.measure.log_steps`.
            parents: See there.
        """
        states, at, last = rollouts.states, rollouts.state, rollouts.state[rollouts.last]
        return cls(
            log_reward=log_reward[at],
            can_stop=states.complete[at],
            measure=log_steps(rollouts, measure, parents),
            successor=rollouts.successor,
            rollout=rollouts.rollout,
            depth=states.size[at] - int(states.rooted),
            group=states.members[last, 0] if states.rooted else states.instance[last],
        )

    @cached_property
    def stops(self) -> Tensor:
        """The visits whose states may end a rollout, shape ``[E]``."""
        return torch.nonzero(self.can_stop).flatten()

    @cached_property
    def ends(self) -> Tensor:
        """The visits that ended a rollout, shape ``[R]``."""
        return torch.nonzero(self.successor < 0).flatten()

    @cached_property
    def goes_on(self) -> Tensor:
        """The visits that another follows, shape ``[S - R]``."""
        return torch.nonzero(self.successor >= 0).flatten()

    @cached_property
    def steps(self) -> Tensor:
        """Of the visits that go on and whose state may end a rollout, as the next one may too: both, ``[2, Q]``."""
        one = self.goes_on[self.can_stop[self.goes_on] & self.can_stop[self.successor[self.goes_on]]]
        return torch.stack([one, self.successor[one]])

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rollouts, and visits of the longest of them."""
        return self.group.numel(), int(self.depth.max()) + 1

    @cached_property
    def place(self) -> Tensor:
        """Where each visit stands in a flat grid of rollouts and depths, shape ``[S]``."""
        return self.rollout * self.shape[1] + self.depth

    @cached_property
    def place_after(self) -> Tensor:
        """Where the next visit stands of each that goes on, shape ``[S - R]``."""
        return self.place[self.successor[self.goes_on]]

    @cached_property
    def sharing(self) -> tuple[Tensor, Tensor]:
        """Which visits that may stop share one Z, as numbers ``[E]``, and how many of each number there are."""
        _, group = torch.unique(self.group, return_inverse=True)
        group = group[self.rollout[self.stops]]
        return group, torch.bincount(group).clamp(min=1)


@dataclass(frozen=True)
class VisitedFlows:
    """Log-flows at ``S`` visits of rollouts to states.

    Attributes:
        visits: The visits.
        out: Logarithm of everything that leaves a state, stopping included, shape ``[S]``.
        stop: Log-flow of stopping, shape ``[S]``.
        taken: Log-flow of the action that was taken; meaningless where the rollout ended, shape ``[S]``.
        inflow: Logarithm of everything that enters, ``-inf`` at a start state, shape ``[S]``; only flow
            matching needs it.
    """

    visits: Visits
    out: Tensor
    stop: Tensor
    taken: Tensor
    inflow: Tensor | None = None


def flow_matching(flows: VisitedFlows) -> Loss:
    """Flow matching (equation 18) in log space: what enters equals what leaves, and stopping equals the reward."""
    assert flows.inflow is not None
    inside = torch.isfinite(flows.inflow.detach())
    balance = (flows.inflow[inside] - flows.out[inside]).square()
    stops = flows.visits.stops
    end = (flows.stop[stops] - flows.visits.log_reward[stops].to(flows.stop.dtype)).square()
    return Loss(balance.sum() + end.sum(), flows.out.numel())


def raw_flow_matching(flows: VisitedFlows) -> Loss:
    """Flow matching as printed (equation 18): squared differences of the flows themselves, summed a rollout."""
    assert flows.inflow is not None
    inside = torch.isfinite(flows.inflow.detach())
    balance = (flows.inflow[inside].exp() - flows.out[inside].exp()).square()
    ends = flows.visits.ends
    end = (flows.stop[ends].exp() - flows.visits.log_reward[ends].to(flows.stop.dtype).exp()).square()
    return Loss(balance.sum() + end.sum(), flows.visits.group.numel())


def log_partition_estimates(flows: VisitedFlows) -> Tensor:
    r"""Returns :math:`\zeta_t` for every visit, shape ``[S]``; meaningless where a state may not stop."""
    visits, dtype = flows.visits, flows.out.dtype
    goes_on = visits.goes_on
    step = (flows.taken - flows.out - visits.measure.to(dtype)).index_select(0, goes_on)
    rows, columns = visits.shape
    line = flows.out.new_zeros(rows * columns).index_copy(0, visits.place_after, step)
    along = line.view(rows, columns).cumsum(dim=1).view(-1).index_select(0, visits.place)
    return visits.log_reward.to(dtype) - (flows.stop - flows.out) - along


def detailed_balance(flows: VisitedFlows) -> Loss:
    """Modified detailed balance: the estimates before and after each step are equal."""
    before, after = log_partition_estimates(flows)[flows.visits.steps]
    gap = after - before
    return Loss(gap.square().sum(), gap.numel())


def subtrajectory_balance(flows: VisitedFlows) -> Loss:
    """Sub-trajectory balance over all pairs of states of a rollout, which is the variance of its estimates."""
    visits = flows.visits
    rollout = visits.rollout[visits.stops]
    count = torch.bincount(rollout, minlength=visits.group.numel()).clamp(min=1)
    return _variance(log_partition_estimates(flows)[visits.stops], rollout, count)


def log_partition_variance(flows: VisitedFlows) -> Loss:
    """Variance of the estimates within each instance: trajectory balance without having to learn Z."""
    estimates = log_partition_estimates(flows).index_select(0, flows.visits.stops)
    return _variance(estimates, *flows.visits.sharing)


def _variance(values: Tensor, group: Tensor, count: Tensor) -> Loss:
    """Sums squared distances of values ``[N]`` from the mean of their group, of which there are ``count``."""
    mean = segment_sum(values, group, count.numel()) / count
    return Loss((values - mean.index_select(0, group)).square().sum(), values.numel())


def trajectory_balance(flows: VisitedFlows, log_partition: Tensor, prefixes: bool = True) -> Loss:
    """Trajectory balance (equation 20).

    Args:
        flows: Visited flows.
        log_partition: Learned log Z of each rollout, shape ``[R]`` or a scalar.
        prefixes: Whether every visited state counts as an end of its own; otherwise only the last of a rollout.
    """
    visits = flows.visits
    counted = visits.stops if prefixes else visits.ends
    learned = log_partition.reshape(-1).expand(visits.group.numel())[visits.rollout[counted]]
    gap = log_partition_estimates(flows)[counted] - learned
    return Loss(gap.square().sum(), gap.numel())
