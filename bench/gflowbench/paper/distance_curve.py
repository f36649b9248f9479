"""How far a policy is from its exact target during training."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.flow.exact import Enumeration, enumerate_subgraphs, terminal_distribution, total_variation
from gflowexplainer.rewards.base import Reward
from gflowexplainer.training.checkpoint import UpdateRecord
from gflowexplainer.training.trainer import Trainer


class DistanceCurve:
    """A callback of :meth:`Trainer.run` that adds ``"distance"`` to the record of every n-th update.

    The distance is the mean total variation between what the policy samples and the target, over all training
    instances, by enumeration of all their connected subgraphs.

    Args:
        every: Updates between two measurements.
        limit: Connected subgraphs in total above which
            :class:`~gflowexplainer.errors.EnumerationError` is raised, at the first update.
    """

    def __init__(self, every: int = 10, limit: int = 200_000) -> None:
        self.every, self.limit = every, limit
        self._truth: tuple[Enumeration, Tensor] | None = None

    def __call__(self, trainer: Trainer, record: UpdateRecord) -> None:
        """Measures the distance after an update."""
        if self._truth is None:
            self._truth = self._enumerate(trainer)
        if trainer.iteration % self.every == 0:
            record["distance"] = float(self.measure(trainer).mean())

    def measure(self, trainer: Trainer) -> Tensor:
        """Returns the total variation of each training instance, shape ``[I]``."""
        enumeration, target = self._truth or self._enumerate(trainer)
        sampler = trainer.sampler
        with torch.no_grad():
            encoding = sampler.encode()
        return total_variation(
            enumeration, terminal_distribution(enumeration, sampler.network.policy, encoding), target
        )

    def _enumerate(self, trainer: Trainer) -> tuple[Enumeration, Tensor]:
        instances = trainer.instances
        every = torch.arange(len(instances), device=instances.device)
        start = trainer.sampler.starts(every)
        enumeration = enumerate_subgraphs(instances, every, start, trainer.settings.max_nodes, limit=self.limit)
        return enumeration, self._target(enumeration, trainer.reward)

    @staticmethod
    def _target(enumeration: Enumeration, reward: Reward) -> Tensor:
        """Returns the log-probability of each state where the reward alone counts (a uniform measure), ``[S]``."""
        states = enumeration.states
        some = torch.nonzero(states.complete).flatten()
        log_reward = torch.zeros(len(states), dtype=torch.double, device=states.size.device)
        log_reward[some] = reward.log_reward(states.subgraphs[some], states.can_grow[some]).double()
        return enumeration.normalize(log_reward)
