r"""What the features of nodes add to a prediction by the model's gradients: evidence without removing anything.

Integrated gradients (Sundararajan et al., 2017) go straight from features that tell nothing, the mean of all nodes, to
those of the nodes, and add up what the log-odds of the class, or the value, gain on the way by each node. They are
noisy, and far off where several places act together. But they never ask about a graph with nodes missing, about which
a model that was trained on whole ones may say anything, and a node over which others only reach the explained one adds
nothing by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gflowexplainer.errors import CheckpointError, ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs

STEPS = 20
"""Interpolation steps between baseline and input."""
_COST = 4
"""Memory of a call with gradients, as a multiple of one without."""
_TINY = 1e-300


@dataclass(frozen=True)
class GradientShare:
    """What gradients count in an instance's own evidence, where what is lost without nodes counts the rest.

    Attributes:
        share: What they count, in [0, 1].
        usual: What a node adds whose features tell nothing.
        baseline: Features that tell nothing, from which they start, shape ``[F]``; empty where they do not count.
    """

    share: float = 0.0
    usual: float = 0.0
    baseline: Tensor = field(default_factory=lambda: torch.zeros(0))

    def mix(self, lost: Tensor, added: Tensor | None) -> Tensor:
        """Returns the mean of what is lost and of what features add, where that is known, both ``[n, 1]``."""
        return lost if added is None else torch.lerp(lost, added.to(lost) + self.usual, self.share)


def mean_baseline(instances: Instances) -> Tensor | None:
    """Returns the mean of the features of all nodes, shape ``[F]``; ``None`` where nothing can lead back to them."""
    x = instances.x
    return instances.rows().detach().mean(dim=0) if x.is_floating_point() and x.layout == torch.strided else None


def integrated_gradients(inputs: TaskInputs, baseline: Tensor | None = None) -> Tensor | None:
    """Returns what each node adds to the log-odds of the class of its instance, or to the value, shape ``[n]``.

    ``None`` where nodes have the same features, the model gives no gradient by them, or one instance is too much for
    the memory that predictions may take.

    Args:
        inputs: The instances, with what the model predicts for them.
        baseline: Features that tell nothing, shape ``[F]``; :func:`mean_baseline` of these instances if not given.
    """
    instances, label = inputs.instances, inputs.target.label
    cost = inputs.predictor.cost(instances) * _COST
    if baseline is not None and baseline.shape != (instances.x.size(1),):
        raise CheckpointError(
            f"Gradients start from {tuple(baseline.shape)} features, but a node has {instances.x.size(1)}. They "
            "belong to another model or another version; fit again."
        )
    baseline = mean_baseline(instances) if baseline is None else baseline
    if baseline is None or int(cost.max()) > inputs.predictor.memory_budget:
        return None
    every, found = torch.arange(len(instances), device=instances.device), list[Tensor]()
    moved = False
    for chunk in inputs.predictor.chunks(cost):
        index = every[chunk]
        part = instances.select(index)
        # What surrounds an instance in the user's graph moves too, but is not scored.
        outer, place = (part, slice(None)) if part.surroundings is None else (part.surroundings, part.place_outside)
        features = outer.rows().detach()
        away = features - baseline
        moved |= bool(away.any())
        total = torch.zeros_like(features)
        for step in range(STEPS):
            missing = 1 - (step + 0.5) / STEPS
            gradient = _gradient(
                inputs.predictor, outer, features - missing * away, None if label is None else label[index]
            )
            if gradient is None:
                return None
            total += gradient / STEPS
        found.append((total * away).sum(dim=1)[place].double())
    return torch.cat(found) if moved else None


def _gradient(predictor: Predictor, instances: Instances, x: Tensor, label: Tensor | None) -> Tensor | None:
    """Returns the gradient of the log-odds of the classes ``[I]``, or of the values, by features ``[n, F]``."""
    with predictor.evaluating(), torch.enable_grad():
        x = x.detach().requires_grad_()
        try:
            said = predictor.whole_with_gradient(replace(instances, x=x, x_row=None))
            (found,) = torch.autograd.grad(_strength(said, label).sum(), x)
        except (ModelError, RuntimeError):
            return None
    return found if bool(torch.isfinite(found).all()) else None


def _strength(said: Tensor, label: Tensor | None) -> Tensor:
    """Returns the log-odds of the classes ``[I]`` by probabilities ``[I, C]``, not cut off; or the values."""
    if label is None:
        return said.sum(dim=1)
    held = said.gather(1, label[:, None])[:, 0]
    others = said.scatter(1, label[:, None], 0.0).sum(dim=1)
    return held.clamp(min=_TINY).log() - others.clamp(min=_TINY).log()
