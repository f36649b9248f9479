r"""Fidelity: what the prediction loses without the explanation, and what it loses with nothing but it.

With :math:`f(G)_y` the probability of the explained class on the instance :math:`G` and :math:`s` the nodes
of the explanation,

.. math::
    \text{fidelity}_+ = \frac{1}{I} \sum_i f(G_i)_{y_i} - f(G_i \setminus s_i)_{y_i}, \qquad
    \text{fidelity}_- = \frac{1}{I} \sum_i f(G_i)_{y_i} - f(s_i)_{y_i}.

The first should be large, the second small. On labels, :math:`f(\cdot)_y` is 1 where :math:`y` is the most
probable class and 0 otherwise. The explained node always stays: without it there is nothing to predict. For a
regression, where any change is a loss, both are the mean of :math:`|f(G) - f(\cdot)|` in units of the target's scale,
labels have no fidelity, and unfaithfulness is :math:`1 - \exp(-|f(G) - f(s)|)` in those units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowbench.explainers.interface import Subject
from gflowexplainer.errors import ConfigError
from gflowexplainer.model.target import TINY
from gflowexplainer.ops.hashed_random import uniform


@dataclass(frozen=True)
class Fidelity:
    r"""Fidelities, averaged over instances.

    Attributes:
        plus: Loss of class probability without the explanation.
        minus: Loss of class probability with only the explanation.
        plus_label: Loss of right labels without the explanation.
        minus_label: Loss of right labels with only the explanation.
        unfaithfulness: :math:`1 - \exp(-\mathrm{KL}(f(G) \,\|\, f(s)))`: how far the prediction with only
            the explanation is from the whole one; 0 is best.
    """

    plus: float
    minus: float
    plus_label: float
    minus_label: float
    unfaithfulness: float


def predict_kept(subject: Subject, kept: Tensor, removal: str = "induced") -> Tensor:
    """Predicts on what is left of each instance when only the nodes ``kept`` ``[n]`` are, shape ``[I, C]``.

    Args:
        subject: Model and instances.
        kept: Mask of the nodes; the explained node is kept in any case.
        removal: ``"induced"``: the other nodes go. ``"isolate"``: they stay, without their edges.
    """
    instances, predictor = subject.instances, subject.predictor
    kept = kept.clone()
    kept[instances.center[instances.center >= 0]] = True
    everything = torch.arange(len(instances), device=instances.device)
    parts = []
    with predictor.evaluating():
        for chunk in predictor.chunks(predictor.cost(instances)):
            begin, end = int(instances.ptr[chunk.start]), int(instances.ptr[chunk.stop])
            parts.append(predictor.predict(instances, everything[chunk], kept[begin:end], removal))
    return torch.cat(parts).double()


def fidelity(subject: Subject, explanation: Tensor, removal: str = "induced") -> Fidelity:
    """Measures how the prediction depends on the nodes ``explanation`` ``[n]``."""
    label = subject.target.label
    whole = subject.target.prediction.double()
    without = predict_kept(subject, ~explanation, removal)
    only = predict_kept(subject, explanation, removal)
    if label is None:
        lost = losses(subject, only)
        unfaithful = float((1 - (-lost).exp()).mean())
        return Fidelity(float(losses(subject, without).mean()), float(lost.mean()), math.nan, math.nan, unfaithful)
    return Fidelity(
        plus=float((_of_class(whole, label) - _of_class(without, label)).mean()),
        minus=float((_of_class(whole, label) - _of_class(only, label)).mean()),
        plus_label=float((_is_class(whole, label) - _is_class(without, label)).mean()),
        minus_label=float((_is_class(whole, label) - _is_class(only, label)).mean()),
        unfaithfulness=float(unfaithfulness(whole, only).mean()),
    )


def unfaithfulness(whole: Tensor, only: Tensor) -> Tensor:
    r"""Computes :math:`1 - \exp(-\mathrm{KL}(p \,\|\, q))` of predictions on the whole and the explanation.

    Args:
        whole: Class probabilities :math:`p`, shape ``[I, C]``.
        only: Class probabilities :math:`q`, shape ``[I, C]``.

    Returns:
        Values in [0, 1), shape ``[I]``. The whole prediction is the reference: ``torch_geometric``'s function
        of this name has the two reversed.
    """
    ratio = whole.clamp(min=TINY).log() - only.clamp(min=TINY).log()
    return 1 - (-(whole * ratio).sum(dim=1).clamp(min=0)).exp()


def robust_fidelity(
    subject: Subject,
    explanation: Tensor,
    *,
    num_contexts: int = 50,
    remove_share: float = 0.1,
    keep_share: float = 0.9,
    removal: str = "induced",
    seed: int = 0,
) -> tuple[float, float]:
    r"""Measures fidelity on graphs that stay close to what the model was trained on.

    A small subgraph alone, or a graph with a hole, is far from any graph the model has seen. Therefore only a
    random part is removed, here of the nodes, and the probability is averaged over draws :math:`m` (after
    Zheng et al., "Towards Robust Fidelity for Evaluating Explainability of Graph Neural Networks", 2024):

    .. math::
        \text{fidelity}_{+} = \frac{1}{I} \sum_i f(G_i)_{y_i}
            - \frac{1}{M} \sum_m f(G_i \setminus A_{im})_{y_i}, \qquad
        \text{fidelity}_{-} = \frac{1}{I} \sum_i f(G_i)_{y_i}
            - \frac{1}{M} \sum_m f(s_i \cup T_{im})_{y_i},

    where :math:`A_{im} \subseteq s_i` holds each node of the explanation with probability ``remove_share``,
    and :math:`T_{im} \subseteq G_i \setminus s_i` each other node with probability ``keep_share``. With 1 and
    0 it is the plain fidelity. The draws are a function of seed and node ids, the same for all explainers.

    Args:
        subject: Model and instances.
        explanation: Nodes of the explanation, shape ``[n]``.
        num_contexts: Number ``M`` of draws.
        remove_share: Chance that a node of the explanation is removed (the publication's first alpha).
        keep_share: Chance that another node is kept (its second alpha).
        removal: ``"induced"`` or ``"isolate"``.
        seed: Names the draws.

    Returns:
        Fidelity plus and minus.
    """
    for name, share in (("remove_share", remove_share), ("keep_share", keep_share)):
        if not 0 <= share <= 1:
            raise ConfigError(f"'{name}' must lie in [0, 1] (got {share}).")
    if num_contexts < 1:
        raise ConfigError(f"'num_contexts' must be at least 1 (got {num_contexts}).")
    instances = subject.instances
    key = instances.own_key[instances.owner]
    without = torch.zeros(len(instances), dtype=torch.double, device=instances.device)
    only = torch.zeros_like(without)
    for number in range(num_contexts):
        draw = uniform(seed, key, instances.key, number)
        without += losses(subject, predict_kept(subject, ~explanation | (draw >= remove_share), removal))
        only += losses(subject, predict_kept(subject, explanation | (draw < keep_share), removal))
    return float((without / num_contexts).mean()), float((only / num_contexts).mean())


def losses(subject: Subject, prediction: Tensor) -> Tensor:
    """Computes what predictions ``[I, C]`` have lost against those on the whole instances, shape ``[I]``.

    The fall of the probability of the class; for a regression the distance of the value, in the target's scale.
    """
    target = subject.target
    whole = target.prediction.double()
    if target.label is None:
        return (whole - prediction).abs().sum(dim=1) / target.scale.double()
    return _of_class(whole, target.label) - _of_class(prediction, target.label)


def _of_class(prediction: Tensor, label: Tensor) -> Tensor:
    return prediction.gather(1, label[:, None])[:, 0]


def _is_class(prediction: Tensor, label: Tensor) -> Tensor:
    return (prediction.argmax(dim=1) == label).double()
