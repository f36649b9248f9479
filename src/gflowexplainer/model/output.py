"""What the model returns: checked, and read as class probabilities or values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from gflowexplainer.errors import ModelError

TINY = 1e-38
"""Probabilities below this count as this, so that their logarithm stays finite."""
_NO_DISTRIBUTION = 1e-2
"""Probabilities whose sum is farther from 1 are none; half precision stays well below."""


def checked_output(name: str, output: Any, rows: int, *, level: str, mode: str, return_type: str) -> Tensor:
    """Refuses an output of the model ``name`` that has the wrong shape, is not finite or not of its ``return_type``.

    Args:
        name: What the model is called in messages.
        output: What it returned.
        rows: How many rows it has to have.
        level, mode, return_type: What the model predicts, as in :class:`~gflowexplainer.model.predictor.Predictor`.

    Returns:
        The output, shape ``[rows, C]``.
    """
    if not isinstance(output, Tensor):
        first = next(iter(output), 0) if isinstance(output, Mapping) else 0
        raise ModelError(
            f"{name} must return a tensor (got {type(output).__name__}). Pick what is explained: "
            f"adapt(model, output=lambda out: out[{first!r}])."
        )
    if output.layout != torch.strided or not output.is_floating_point():
        got = output.layout if output.layout != torch.strided else output.dtype
        raise ModelError(
            f"{name} must return dense floating-point numbers (got {got}). Return scores or probabilities, not "
            "classes; use .float() or .to_dense()."
        )
    if level != "node" and rows == 1 and output.dim() < 2:
        output = output.reshape(1, -1)  # what squeeze() leaves of the answer on a single graph or link
    if output.dim() == 1:
        output = output[:, None]
    if output.dim() != 2 or output.size(0) != rows:
        what = "link" if level == "edge" else level
        raise ModelError(
            f"{name} must return one row a {what}, shape [{rows}, num_classes] (got {tuple(output.shape)}). "
            f"Is it really a {level}-level model?"
        )
    if output.size(1) == 0:
        raise ModelError(f"{name} returned no columns, shape {tuple(output.shape)}. Return one a class.")
    sound = torch.isfinite(output)
    if return_type == "log_probs":
        sound |= output.isneginf()
    if not sound.all():
        raise ModelError(f"{name} returned NaN or infinity. An explanation of that would mean nothing.")
    _refuse_other_return_type(name, output.detach(), mode, return_type)
    return output


def _refuse_other_return_type(name: str, output: Tensor, mode: str, return_type: str) -> None:
    """Notices raw scores that are passed off as (log-)probabilities."""
    if mode == "regression" or return_type == "raw" or output.numel() == 0:
        return
    low, high = (0.0, 1.0) if return_type == "probs" else (-torch.inf, 0.0)
    if float(output.min()) < low - 1e-4 or float(output.max()) > high + 1e-4:
        raise ModelError(
            f"{name} returned values from {float(output.min()):.3g} to "
            f"{float(output.max()):.3g}, which are no {return_type}. Use return_type='raw'?"
        )
    if mode != "multiclass_classification" or output.size(1) < 2:
        return
    total = (output.exp() if return_type == "log_probs" else output).sum(dim=1)
    worst = total[(total - 1).abs().argmax()]
    if float((worst - 1).abs()) > _NO_DISTRIBUTION:
        raise ModelError(
            f"{name} returned {return_type} whose sum is {float(worst):.4g} instead of 1 "
            "in a row. Normalise them (softmax), or use return_type='raw' for scores; labels that do not exclude "
            "one another need one model each, with mode='binary_classification'."
        )


def read_output(output: Tensor, mode: str, return_type: str) -> Tensor:
    """Turns what a model of PyG's ``mode`` and ``return_type`` returns ``[Q, C]`` into probabilities, or values."""
    found = read_log_output(output, mode, return_type)
    return found if mode == "regression" else found.exp().to(output)


def read_log_output(output: Tensor, mode: str, return_type: str) -> Tensor:
    """Turns what a model returns ``[Q, C]`` into log-probabilities, in double precision, or values.

    Raw scores and log-probabilities are never turned into probabilities on the way, so that a model that is very sure
    of itself is still told from one that is surer.
    """
    if mode == "regression":
        if output.size(1) != 1:
            raise ModelError(
                f"A regression model must return one column (got {output.size(1)}). Of several outputs, explain one: "
                "adapt(model, output=lambda out: out[:, 0:1])."
            )
        return output
    values = output.double()
    if mode == "binary_classification":
        if output.size(1) != 1:
            raise ModelError(
                f"A binary classifier must return one column (got {output.size(1)}). Use "
                "mode='multiclass_classification'; of several labels that do not exclude one another, explain one: "
                "adapt(model, output=lambda out: out[:, :1])."
            )
        if return_type == "raw":
            return torch.cat([logsigmoid(-values), logsigmoid(values)], dim=1)
        positive = values if return_type == "probs" else values.exp()
        return torch.cat([1 - positive, positive], dim=1).clamp(min=TINY).log()
    if output.size(1) == 1:
        raise ModelError(
            "A multiclass classifier must return at least two columns (got 1). "
            "Use mode='binary_classification' or 'regression'."
        )
    if return_type == "probs":
        return values.clamp(min=TINY).log()
    return values.log_softmax(dim=1) if return_type == "raw" else values


def log_odds(log_probability: Tensor, label: Tensor) -> Tensor:
    """Returns the log-odds of a class ``[Q]`` from log-probabilities ``[Q, C]``, shape ``[Q]``."""
    own = log_probability.gather(1, label[:, None])
    others = log_probability.scatter(1, label[:, None], -torch.inf).logsumexp(dim=1)
    return own[:, 0] - others
