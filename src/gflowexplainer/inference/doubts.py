"""When a result should not be trusted, it says so: reasons for doubt, in words, with the numbers."""

from __future__ import annotations

import torch

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.steering import AGREED

UNEXPLAINED = 0.05
"""A share of variance below which the evidence explains nothing."""
SCALES = 1e3
"""Columns of features whose spreads differ by this factor are on different scales."""


def doubts_about(reward: Reward, error: float, position: int) -> tuple[str, ...]:
    """Says what speaks against the explanation of one instance; nothing if nothing does.

    Args:
        reward: What was sampled by.
        error: How far what is shown is off, in total variation.
        position: The instance.
    """
    said = list(reward.predictor.notes)
    if error > AGREED:
        said.append(
            f"The probabilities may be off by {error:.2f} in total variation: independent samples differ by that much. "
            "Raise 'num_samples', or lower 'max_nodes' so that all subgraphs can be listed."
        )
    if isinstance(reward, EvidenceReward) and reward.learned.explained < UNEXPLAINED:
        said.append(
            f"Kinds of nodes explain {max(0.0, 100 * reward.learned.explained):.0f}% of what the model says of random "
            "pieces, so good and bad subgraphs are hardly told apart. reward='context' asks the model itself."
        )
    return (*said, *scales(reward.instances, position))


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
