"""How far what a node adds to a value is told by its features, and how far by removing it.

Without a node on the way to others, all is lost that lies behind it, and a model may say anything of a graph with a
hole in it; gradients see neither. Both say what a node adds, in the same units. What each counts is fitted to what the
model predicts for random subgraphs in the smallest contexts, where much of what lies behind others is cut off anyway.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.evidence import RIDGE
from gflowexplainer.rewards.gradients import GradientShare, mean_baseline
from gflowexplainer.rewards.least_squares import LeastSquares, Regularization
from gflowexplainer.rewards.measuring import Measurements, gradients_of_some, sums_over

LEAST = 0.2
"""What gradients must count to be asked for at all."""


def find_gradient_share(
    inputs: TaskInputs, subgraphs: Subgraphs, found: Measurements, lost: Tensor, seed: int
) -> GradientShare:
    """Finds what gradients count in own evidence of values: nothing where there are none, or of links and types.

    Args:
        inputs: The instances, with what the model predicts for them.
        subgraphs: ``B`` subgraphs of them.
        found: What was measured of these.
        lost: What is lost without each of their nodes, shape ``[n, 1]``.
        seed: Names the instances whose gradients are asked for.
    """
    instances = inputs.instances
    if instances.other_end is not None or instances.num_types > 1:
        return GradientShare()
    baseline = mean_baseline(instances)
    some = None if baseline is None else gradients_of_some(inputs, seed, baseline)
    if baseline is None or some is None:
        return GradientShare()
    added, asked = some
    rows = torch.nonzero(asked[subgraphs.instance]).flatten()
    share, usual = fit_share(subgraphs[rows], found.value[rows], lost[:, 0], added)
    return GradientShare(share, usual, baseline) if share >= LEAST else GradientShare()


def fit_share(subgraphs: Subgraphs, measured: Tensor, lost: Tensor, added: Tensor) -> tuple[float, float]:
    """Returns the weight of gradients beside that of losses, where both predict what was measured, in [0, 1].

    And what a node adds of which gradients say nothing, since its features are those that they start from.

    Args:
        subgraphs: ``B`` subgraphs.
        measured: What was measured of each, shape ``[B]``.
        lost: What is lost without each node, shape ``[n]``.
        added: What its features add, shape ``[n]``.
    """
    sums = [sums_over(subgraphs, value.double()) for value in (lost, added)]
    description = torch.stack([*sums, subgraphs.size.double()], dim=1)
    ridge = torch.full((description.size(1),), RIDGE, dtype=torch.double, device=description.device)
    weight = LeastSquares(description, measured, subgraphs.instance, None, ridge).weights(0, Regularization())[-1]
    by_loss, by_gradient = weight[:2].clamp(min=0).tolist()
    if by_gradient <= 0:
        return 0.0, 0.0
    return by_gradient / (by_loss + by_gradient), float(weight[2]) / by_gradient
