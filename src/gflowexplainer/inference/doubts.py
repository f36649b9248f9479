"""When a result should not be trusted, it says so: reasons for doubt, in words, with the numbers."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.sampler import FlowSampler

FEW, SHARE = 5.0, 0.1
"""An effective sample size below this number, and below this share of the samples, is too small."""
UNEXPLAINED = 0.05
"""A share of variance below which the evidence explains nothing."""
SCALES = 1e3
"""Columns of features whose spreads differ by this factor are on different scales."""


class Doubts:
    """Finds what speaks against the explanations of a sampler.

    Args:
        sampler: The trained sampler.
        effective_size: Effective sample size of each instance, shape ``[I]``; ``nan`` where nothing was sampled.
        num_samples: Subgraphs sampled of each.
    """

    def __init__(self, sampler: FlowSampler, effective_size: Tensor, num_samples: int) -> None:
        self.sampler, self.effective_size, self.num_samples = sampler, effective_size, num_samples

    def of(self, position: int) -> tuple[str, ...]:
        """Says what speaks against the explanation of one instance; nothing if nothing does."""
        said = [*self.sampler.predictor.notes, *self._samples(position), *self._evidence]
        return (*said, *scales(self.sampler.instances, position))

    def _samples(self, position: int) -> list[str]:
        size, total = float(self.effective_size[position]), self.num_samples
        if math.isnan(size) or size >= FEW or size >= SHARE * total:
            return []
        return [
            f"The {total} samples are worth {size:.1f} of the target (effective sample size), so probabilities may be "
            "far from it. Sample more, train longer, or look at the certificate."
        ]

    @cached_property
    def _evidence(self) -> list[str]:
        reward = self.sampler.reward
        if not isinstance(reward, ConsensusReward) or reward.consensus.chosen.explained >= UNEXPLAINED:
            return []
        share = reward.consensus.chosen.explained
        return [
            f"What the reward is learned from explains {max(0.0, 100 * share):.0f}% of what the model says of random "
            "subgraphs, so good and bad subgraphs are hardly told apart. reward='context' asks the model itself."
        ]


def scales(instances: Instances, position: int) -> list[str]:
    """Says that features of an instance are on wildly different scales, if they are."""
    rows = instances.rows(slice(int(instances.ptr[position]), int(instances.ptr[position + 1])))
    if rows.size(0) < 2:
        return []
    spread = rows.float().std(dim=0)
    varies = spread[spread > 0]
    if varies.numel() < 2 or float(varies.max()) <= SCALES * float(varies.median()):
        return []
    column = int(torch.argmax(spread))
    return [
        f"Column {column} of the features spreads {float(varies.max() / varies.median()):.0f} times as far as a usual "
        "one. Models and explanations see little beside it; scale the features."
    ]
