"""How much of predictions node sets preserve, with everything else removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.random_parts import NodeSet
from gflowexplainer.model.target import Target
from gflowexplainer.rewards.base import Reward

HELD = 0.9
"""Share of the prediction that has to be preserved."""
MARGIN = 0.1
"""How much better is better: in probability, or as a share of the way to a value."""
NEARLY = 0.02
"""A share of the prediction that makes no difference."""


@dataclass(frozen=True)
class Preservation:
    """What the model predicts with only some node sets, ``[Q, C]``, and how much of the target is left, ``[Q]``."""

    prediction: Tensor
    preserved: Tensor
    same_class: Tensor

    @property
    def held(self) -> Tensor:
        """Which of them preserve the prediction, shape ``[Q]``."""
        return self.same_class & (self.preserved >= HELD)


def measure_preservation(
    reward: Reward, node_sets: Sequence[tuple[int, NodeSet]], *, without: bool = False
) -> Preservation:
    """Evaluates the model on node sets with everything else removed, or on everything else.

    Args:
        reward: Knows the model and what is to be preserved.
        node_sets: ``Q`` pairs of an instance and some of its nodes.
        without: Whether these nodes are removed, and not the others.
    """
    prediction = predict_sets(reward, node_sets, without=without)
    return preservation_of(reward.target, prediction, torch.tensor([i for i, _ in node_sets], device=prediction.device))


def predict_sets(reward: Reward, node_sets: Sequence[tuple[int, NodeSet]], *, without: bool = False) -> Tensor:
    """Returns what the model predicts with only, or without, each of ``Q`` node sets, shape ``[Q, C]``."""
    subgraphs = Subgraphs.of_lists(
        [i for i, _ in node_sets], [sorted(nodes) for _, nodes in node_sets], reward.instances.device
    )
    # Whatever the reward measures by, nodes that are gone are gone.
    return reward.predict(subgraphs, without=without, removal=Removal.induced)


def preservation_of(target: Target, prediction: Tensor, instance: Tensor) -> Preservation:
    """Returns how much of the target predictions ``[Q, C]`` preserve."""
    whole = target.prediction[instance].to(prediction)
    if target.label is None:
        missing = (prediction - whole).abs().sum(dim=1) / target.scale[instance].to(prediction)
        return Preservation(prediction, (1 - missing).clamp(min=0).double(), torch.ones_like(missing, dtype=torch.bool))
    label = target.label[instance, None]
    left, all_of_it = (values.gather(1, label)[:, 0].double() for values in (prediction, whole))
    share = (left / all_of_it.clamp(min=1e-12)).clamp(max=1)
    return Preservation(prediction, share, prediction.argmax(dim=1) == label[:, 0])
