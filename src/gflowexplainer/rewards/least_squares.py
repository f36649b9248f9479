"""Least squares within instances: each has an intercept of its own, all count alike, and classes are partly pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gflowexplainer.ops.segments import segment_sum


def shares_of(instance: Tensor) -> Tensor:
    """Returns the weights of rows of some ``instance`` ``[B]`` by which all instances count alike, shape ``[B]``."""
    return 1 / torch.bincount(instance).clamp(min=1).double()[instance]


def within(values: Tensor, instance: Tensor, share: Tensor) -> Tensor:
    """Centres values ``[B, ...]`` within their instances, by their :func:`shares_of` them."""
    flat = values.double().reshape(values.size(0), -1)
    mean = segment_sum(flat * share[:, None], instance, int(instance.max()) + 1)
    return (flat - mean[instance]).reshape(values.shape)


class Regularization(NamedTuple):
    """How weights are held back.

    Attributes:
        pooling: A class of so many instances is described half by its own weights and half by those of all classes;
            infinite to tell no classes apart.
        caution: What penalties are multiplied by.
    """

    pooling: float = math.inf
    caution: float = 1.0


class LeastSquares:
    """Fits measurements within each instance; how weights are held back can be asked in several ways.

    All instances count alike, whatever the number of their subgraphs, and each has an intercept of its own.

    Args:
        description: Descriptions of ``B`` subgraphs, shape ``[B, P]``.
        measured: What was measured of each, shape ``[B]``.
        instance: Instance of each, shape ``[B]``.
        label: Class of each instance, shape ``[I]``; ``None`` for regression.
        ridge: Penalty of each standardised weight, shape ``[P]``.
    """

    def __init__(
        self, description: Tensor, measured: Tensor, instance: Tensor, label: Tensor | None, ridge: Tensor
    ) -> None:
        self._share = share = shares_of(instance)
        columns, self._wanted = within(description, instance, share), within(measured, instance, share)
        total = float(share.sum())
        scale = ((columns.square() * share[:, None]).sum(dim=0) / total).sqrt()
        self._scale = torch.where(scale > 1e-9, scale, 1.0)
        self._columns = columns / self._scale
        self._penalty = torch.diag(ridge)
        self._class = None if label is None else label[instance]
        weighted = (self._columns * share[:, None]).t()
        self._products, self._sums = weighted @ self._columns / total, weighted @ self._wanted / total

    def weights(self, num_classes: int, regularization: Regularization) -> Tensor:
        """Returns weights ``[C + 1, P]``, the last row for all classes together.

        Args:
            num_classes: Number ``C`` of classes; 0 for regression.
            regularization: See :class:`Regularization`.
        """
        pooled = torch.linalg.solve(self._products + regularization.caution * self._penalty, self._sums)
        rows = pooled.repeat(num_classes + 1, 1)
        if self._class is not None and not math.isinf(regularization.pooling):
            # A class without an instance keeps the weights of all: the limit of ever weaker pooling.
            for c in torch.unique(self._class).tolist():
                rows[c] = self._of_class(c, regularization, pooled)
        return rows / self._scale

    def _of_class(self, c: int, regularization: Regularization, pooled: Tensor) -> Tensor:
        own = self._class == c
        columns, share = self._columns[own], self._share[own]
        here = columns.t() * share
        toward = regularization.pooling * torch.eye(len(self._scale)).to(columns)
        left = here @ columns + float(share.sum()) * regularization.caution * self._penalty + toward
        return torch.linalg.solve(left, here @ self._wanted[own] + regularization.pooling * pooled)


def held_out(
    description: Tensor,
    measured: Tensor,
    instance: Tensor,
    label: Tensor | None,
    num_classes: int,
    ridge: Tensor,
    regularizations: Sequence[Regularization],
    fold: Tensor,
) -> list[float]:
    """Returns the share of variance within instances that weights explain which were fitted to the other folds.

    Args:
        description: Descriptions of ``B`` subgraphs, shape ``[B, P]``.
        measured: What was measured of each, shape ``[B]``.
        instance: Instance of each, shape ``[B]``.
        label: Class of each instance, shape ``[I]``; ``None`` for regression.
        num_classes: Number of classes; 0 for regression.
        ridge: Penalty of each standardised weight, shape ``[P]``.
        regularizations: Those that are tried.
        fold: The fold of each subgraph, from 0, shape ``[B]``.

    Returns:
        The share that weights explain which are held back in each of these ways.
    """
    left, total = [0.0] * len(regularizations), 0.0
    for part in range(int(fold.max()) + 1):
        seen, rest = torch.nonzero(fold != part).flatten(), torch.nonzero(fold == part).flatten()
        if not seen.numel() or not rest.numel():
            continue
        fitted = LeastSquares(description[seen], measured[seen], instance[seen], label, ridge)
        row = -1 if label is None else label[instance[rest]]
        share, described = shares_of(instance[rest]), description[rest].double()
        wanted = within(measured[rest], instance[rest], share)
        total += float((share * wanted.square()).sum())
        for number, one in enumerate(regularizations):
            predicted = (described * fitted.weights(num_classes, one)[row]).sum(dim=1)
            given = within(predicted, instance[rest], share)
            left[number] += float((share * (wanted - given).square()).sum())
    return [1 - one / total if total > 0 else 0.0 for one in left]
