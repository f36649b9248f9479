"""What rollouts visited, as the objectives see it: all that does not change while the flows are being learned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.flow.measure import log_steps
from gflowexplainer.flow.sampling import Rollouts


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
