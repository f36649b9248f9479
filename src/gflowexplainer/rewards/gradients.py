r"""What the features of a graph's nodes add to its class by the model's gradients: evidence without removing anything.

Integrated gradients (Sundararajan et al., 2017) go straight from features that tell nothing, here the mean of all
nodes, to those of the graph, and add up what the log-odds of the class gain on the way by each node. They are noisy,
and far off where several places act together. But they never ask about a graph with nodes missing, about which a model
that was trained on whole ones may say anything.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import ranges

STEPS = 20
"""Points of the way at which the model is asked."""
_COST = 4
"""Times the memory that a call takes which is followed back."""
_TINY = 1e-300


def integrated_gradients(inputs: TaskInputs) -> Tensor | None:
    """Returns what each node adds to the log-odds of the class of its graph, shape ``[n]``.

    ``None`` where nodes have the same features, or the model gives no gradient by them.
    """
    instances, label = inputs.instances, inputs.target.label
    assert label is not None
    features = instances.rows().detach()
    if not features.is_floating_point():
        return None
    away = features - features.mean(dim=0)
    if not away.any():
        return None
    total, every = torch.zeros_like(features), torch.arange(len(instances), device=instances.device)
    cost = inputs.predictor.cost(instances) * _COST
    for chunk in inputs.predictor.chunks(cost):
        index = every[chunk]
        _, nodes = ranges(instances.ptr[index], instances.node_counts[index])
        part = instances.select(index)
        for step in range(STEPS):
            missing = 1 - (step + 0.5) / STEPS
            found = _gradient(inputs.predictor, part, features[nodes] - missing * away[nodes], label[index])
            if found is None:
                return None
            total[nodes] += found / STEPS
    return (total * away).sum(dim=1).double()


def _gradient(predictor: Predictor, instances: Instances, x: Tensor, label: Tensor) -> Tensor | None:
    """Returns the gradient of the log-odds of the classes ``[I]`` of graphs by features ``[n, F]``."""
    with predictor.evaluating(), torch.enable_grad():
        x = x.detach().requires_grad_()
        try:
            said = predictor.whole_with_gradient(replace(instances, x=x))
            held = said.gather(1, label[:, None])[:, 0]
            others = said.scatter(1, label[:, None], 0.0).sum(dim=1)
            odds = held.clamp(min=_TINY).log() - others.clamp(min=_TINY).log()
            (found,) = torch.autograd.grad(odds.sum(), x)
        except (ModelError, RuntimeError):
            return None
    return found if bool(torch.isfinite(found).all()) else None
