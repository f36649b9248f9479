"""What an explanation has to hold: the predicted class, a class of the user's choice, or a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.output import log_odds
from gflowexplainer.model.predictor import Predictor

TINY = 1e-12
"""Probabilities below this count as this, so that their logarithm stays finite."""


@dataclass(frozen=True)
class Target:
    """The prediction of ``I`` instances that subgraphs are held against.

    Attributes:
        prediction: Class probabilities on the whole instances ``[I, C]``, or values ``[I, 1]``.
        label: Class to hold, shape ``[I]``; ``None`` for regression.
        scale: For regression, the deviation that counts as one unit, shape ``[I]``.
    """

    prediction: Tensor
    label: Tensor | None
    scale: Tensor

    @classmethod
    def of(
        cls,
        predictor: Predictor,
        instances: Instances,
        label: Tensor | None = None,
        prediction: Tensor | None = None,
    ) -> Target:
        """Holds the class that the model predicts on the whole instances, unless ``label`` ``[I]`` is given.

        The model is not asked again where its ``prediction`` ``[I, C]`` is known already. For regression, one unit of
        deviation is how far the prediction moves when all else than the explained node is removed (at graph level: all
        edges), so that rewards compare across instances.
        """
        if prediction is None:
            with predictor.evaluating():
                prediction = predictor.whole(instances)
        if predictor.mode == "regression":
            with predictor.evaluating():
                bare = _bare_prediction(predictor, instances)
                scale = (prediction - bare).abs().sum(dim=1).clamp(min=1e-6)
                return cls(prediction if label is None else _values(label, prediction), None, scale)
        num_classes = prediction.size(1)
        if label is None:
            label = prediction.argmax(dim=1)
        else:
            label = label.to(prediction.device).reshape(-1).long()
            if label.numel() != len(instances):
                raise InstanceError(f"There are {len(instances)} instances but {label.numel()} targets. Pass one each.")
            wrong = label[(label < 0) | (label >= num_classes)]
            if wrong.numel():
                raise InstanceError(
                    f"The target names class {int(wrong[0])}, but the model knows {num_classes} classes. "
                    f"Pass classes in [0, {num_classes})."
                )
        return cls(prediction, label, prediction.new_ones(len(instances)))

    def select(self, index: Tensor) -> Target:
        """Takes the targets of the instances ``index``."""
        label = None if self.label is None else self.label[index]
        return Target(self.prediction[index], label, self.scale[index])

    def log_preservation(self, prediction: Tensor, instance: Tensor) -> Tensor:
        """Returns how well predictions ``[Q, C]`` preserve the target of their instances, a logarithm, ``[Q]``.

        Classification: the log-probability of the class. Regression: a Gaussian in the deviation.
        """
        if self.label is None:
            deviation = (prediction - self.prediction[instance]).abs().sum(dim=1) / self.scale[instance]
            return -0.5 * deviation.square()
        return prediction.gather(1, self.label[instance, None])[:, 0].clamp(min=TINY).log()

    def strength(self, prediction: Tensor, instance: Tensor) -> Tensor:
        """Returns how strongly predictions ``[Q, C]`` speak for the target, in units that add up, shape ``[Q]``.

        Classification: the log-odds of the class, from log-probabilities, so that they never saturate. Regression: the
        value itself, so that what raises it and what lowers it can be told apart.
        """
        if self.label is None:
            return prediction.double().sum(dim=1)
        return log_odds(prediction, self.label[instance])


def given_targets(predictor: Predictor, target: Any, index: Tensor, total: int) -> Tensor | None:
    """Picks the user's targets of the rows ``index`` of ``total``: ``[I, C]`` for regression, ``[I]`` otherwise."""
    if target is None:
        return None
    try:
        values = torch.as_tensor(target, device=index.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'target' must be a tensor of classes or values (got {target!r}).") from error
    values = values.reshape(1) if values.dim() == 0 else values
    if values.size(0) == total:
        values = values[index]
    elif values.size(0) != index.numel():
        raise InstanceError(
            f"'target' has {values.size(0)} rows. Pass one for each of the {total} rows of the model's output, "
            f"or one for each of the {index.numel()} explained ones."
        )
    values = values.reshape(index.numel(), -1)
    if predictor.mode == "regression":
        return values
    if values.size(1) != 1:
        raise InstanceError(f"'target' must hold one class each (got {values.size(1)} columns).")
    if values.is_floating_point() and not torch.equal(values, values.round()):
        raise InstanceError("'target' must hold classes, which are whole numbers (got fractions).")
    return values[:, 0].long()


def _values(label: Tensor, prediction: Tensor) -> Tensor:
    """Brings the user's values into the shape of ``prediction``, or says what is wrong with them."""
    if label.numel() != prediction.numel():
        raise InstanceError(f"The model returned {prediction.numel()} values but there are {label.numel()} targets.")
    if not torch.isfinite(label).all():
        raise InstanceError("The targets hold NaN or infinity. Pass finite values.")
    return label.reshape(prediction.shape).to(prediction)


def _bare_prediction(predictor: Predictor, instances: Instances) -> Tensor:
    kept = torch.zeros(instances.num_nodes, dtype=torch.bool, device=instances.device)
    kept[instances.roots] = True
    index = torch.arange(len(instances), device=instances.device)

    def predict(chunk: slice) -> Tensor:
        begin, end = int(instances.ptr[chunk.start]), int(instances.ptr[chunk.stop])
        return predictor.predict(instances, index[chunk], kept[begin:end], removal="isolate", alone=True)

    return predictor.in_chunks(instances, index, predict)
