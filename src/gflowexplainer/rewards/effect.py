"""What the model does with the subgraphs that a kind of evidence rates best: the proof of what it would show."""

from __future__ import annotations

from typing import NamedTuple

import torch

from gflowexplainer.choices import Removal
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.prediction import PredictionReward

HELD = 0.5
"""What the best subgraphs must do to a class, hold it or be needed for it, for what names them to count."""
WEAKER = 0.1
"""How much less the subgraphs that evidence rates best may do than those that other evidence rates best."""
LITTLE = 0.25
"""How far subgraphs have to be needed and not enough for that to count a little."""


class Effect(NamedTuple):
    """What the best subgraphs do to the probability of the class, as means over instances.

    Attributes:
        size: The mean of the probability with only the subgraph and of its fall without it: 1 where the class is held
            by the subgraph and by nothing else.
        incomplete: The product of its fall without the subgraph and its fall with only it: near 1 where the subgraph is
            needed and not enough, since the class rests on several places at once.
        lacking: Its fall with only the subgraph: near 0 where that is enough.
        needed: Its fall without the subgraph: near 0 where others stand in for it.
    """

    size: float
    incomplete: float
    lacking: float
    needed: float


@torch.no_grad()
def effect_of(inputs: TaskInputs, best: Subgraphs) -> Effect:
    """Keeps, and then removes, the subgraph of each instance that is rated best; the model says what that does.

    Args:
        inputs: The instances, with what the model predicts for them; classes, not values.
        best: A subgraph of each instance, in their order.
    """
    label = inputs.target.label
    assert label is not None
    reward = PredictionReward(inputs.predictor, inputs.instances, target=inputs.target)
    whole = inputs.target.prediction
    only, without = (reward.predict(best, without=gone, removal=Removal.induced) for gone in (False, True))
    whole, only, without = (said.gather(1, label[:, None])[:, 0].double() for said in (whole, only, without))
    lacking, falls = (whole - only).clamp(min=0), (whole - without).clamp(min=0)
    size = (only + whole - without).mean() / 2
    return Effect(float(size), float((falls * lacking).mean()), float(lacking.mean()), float(falls.mean()))
