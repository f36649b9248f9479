"""When a result should not be trusted, it says so: reasons for doubt, in words, with the numbers."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.steering import AGREED

UNEXPLAINED = 0.05
"""A share of variance below which the evidence explains nothing."""
SCALES = 1e3
"""Columns of features whose spreads differ by this factor are on different scales."""


class Doubts:
    """Finds what speaks against the explanations of a sampler.

    Args:
        sampler: What was sampled from.
        error: How far what is shown is off, in total variation, shape ``[I]``.
    """

    def __init__(self, sampler: FlowSampler, error: Tensor) -> None:
        self.sampler, self.error = sampler, error

    def of(self, position: int) -> tuple[str, ...]:
        """Says what speaks against the explanation of one instance; nothing if nothing does."""
        said = [*self.sampler.predictor.notes, *self._samples(position), *self._evidence]
        return (*said, *scales(self.sampler.instances, position))

    def _samples(self, position: int) -> list[str]:
        error = float(self.error[position])
        if error <= AGREED:
            return []
        return [
            f"The probabilities may be off by {error:.2f} in total variation: independent samples differ by that much. "
            "Raise 'num_samples', or lower 'max_nodes' so that all subgraphs can be listed."
        ]

    @cached_property
    def _evidence(self) -> list[str]:
        reward = self.sampler.reward
        if not isinstance(reward, EvidenceReward) or reward.learned.explained >= UNEXPLAINED:
            return []
        return [
            f"Kinds of nodes explain {max(0.0, 100 * reward.learned.explained):.0f}% of what the model says of random "
            "pieces, so good and bad subgraphs are hardly told apart. reward='context' asks the model itself."
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
