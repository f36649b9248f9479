"""What the model does with the subgraphs that a kind of evidence rates best: the proof of what it would show."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import segment_argmax
from gflowexplainer.rewards.prediction import PredictionReward


@torch.no_grad()
def effect_of_best(inputs: TaskInputs, subgraphs: Subgraphs, rating: Tensor) -> float:
    """Keeps, and then removes, the subgraph of each instance that is rated best; the model says what that does.

    Args:
        inputs: The instances, with what the model says of them; classes, not values.
        subgraphs: ``B`` subgraphs, some of every instance.
        rating: How each is rated, shape ``[B]``.

    Returns:
        The probability of the class with only the subgraph, and its fall without it: the mean of both over all
        instances. It is 1 where the class is held by the subgraph and by nothing else.
    """
    label = inputs.target.label
    assert label is not None
    reward = PredictionReward(inputs.predictor, inputs.instances, target=inputs.target)
    best = subgraphs[segment_argmax(rating, subgraphs.instance, len(inputs.instances))]
    whole = inputs.target.prediction
    only, without = (reward.predict(best, without=gone, removal=Removal.induced) for gone in (False, True))
    return float((only + whole - without).gather(1, label[:, None]).double().mean()) / 2
