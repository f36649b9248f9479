"""One regression for all instances: each has its own intercept, all count alike, and classes are partly pooled."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.ops.segments import segment_sum
from gflowexplainer.steering import POOLING, RIDGE


def shares_of(instance: Tensor) -> Tensor:
    """Returns weights of rows of some ``instance`` ``[B]`` by which all instances count alike, shape ``[B]``."""
    return 1 / torch.bincount(instance).clamp(min=1).double()[instance]


def within(values: Tensor, instance: Tensor) -> Tensor:
    """Centres values ``[B]`` or ``[B, P]`` within their instances."""
    share = shares_of(instance)
    flat = values.double().reshape(values.size(0), -1)
    mean = segment_sum(flat * share[:, None], instance, int(instance.max()) + 1)
    return (flat - mean[instance]).reshape(values.shape)


class Regression:
    """Least squares of what pieces bring by what they are made of, within instances.

    Args:
        description: What ``B`` pieces are made of, shape ``[B, P]``.
        instance: Instance of each, shape ``[B]``.
        label: Class of each instance, shape ``[I]``; ``None`` for values.
        num_classes: Number of classes ``C``; 0 for values.
    """

    def __init__(self, description: Tensor, instance: Tensor, label: Tensor | None, num_classes: int) -> None:
        self.instance, self.share = instance, shares_of(instance)
        self.num_classes = num_classes
        self.row = None if label is None else label[instance]
        columns = within(description, instance)
        spread = ((columns.square() * self.share[:, None]).sum(dim=0) / self.share.sum()).sqrt()
        self.scale = torch.where(spread > 1e-9, spread, 1.0)
        self.columns = columns / self.scale

    def weights(self, brought: Tensor, which: Tensor | None = None) -> Tensor:
        """Fits what pieces brought ``[B]``, or some of them; returns weights of a description, ``[C + 1, P]``.

        The last row is of all classes together, and of values.
        """
        wanted = within(brought, self.instance)
        every = torch.arange(len(wanted), device=wanted.device) if which is None else which
        pooled = self._solve(wanted, every, torch.zeros_like(self.scale), 0.0)
        rows = pooled.repeat(self.num_classes + 1, 1)
        if self.row is not None:
            for label in torch.unique(self.row[every]).tolist():
                rows[label] = self._solve(wanted, every[self.row[every] == label], pooled, POOLING)
        return rows / self.scale

    def _solve(self, wanted: Tensor, rows: Tensor, toward: Tensor, pull: float) -> Tensor:
        columns, share = self.columns[rows], self.share[rows]
        weighted = columns.t() * share
        penalty = RIDGE * float(share.sum()) + pull
        left = weighted @ columns + penalty * torch.eye(len(toward), dtype=columns.dtype, device=columns.device)
        return torch.linalg.solve(left, weighted @ wanted[rows] + pull * toward)

    def held_out(self, brought: Tensor) -> float:
        """Returns the share of the variance within instances that is explained where it was not fitted.

        Half of the instances teach the other half; of a single instance, half of its pieces.
        """
        wanted, fold = within(brought, self.instance), self.instance % 2
        if int(self.instance.max()) == 0:
            fold = torch.arange(len(wanted), device=wanted.device) % 2
        left = 0.0
        for part in (0, 1):
            seen, rest = torch.nonzero(fold != part).flatten(), torch.nonzero(fold == part).flatten()
            if not seen.numel() or not rest.numel():
                return 0.0
            weight = self.weights(brought, seen) * self.scale
            own = weight[-1] if self.row is None else weight[self.row[rest]]
            missed = wanted[rest] - (self.columns[rest] * own).sum(dim=1)
            left += float((self.share[rest] * missed.square()).sum())
        total = float((self.share * wanted.square()).sum())
        return 1 - left / total if total > 0 else 0.0


def spread(values: Tensor, instance: Tensor) -> float:
    """Returns the spread of values ``[B]`` within their instances, 1 where there is none."""
    found = float((shares_of(instance) * within(values, instance).square()).sum() / (int(instance.max()) + 1)) ** 0.5
    return found if found > 0 else 1.0


def correlation(one: Tensor, other: Tensor, instance: Tensor) -> float:
    """Returns the correlation of values ``[B]`` within their instances, 0 where one of them does not differ."""
    one, other, share = within(one, instance), within(other, instance), shares_of(instance)
    scale = float(((share * one.square()).sum() * (share * other.square()).sum()).sqrt())
    return float((share * one * other).sum()) / scale if scale > 0 else 0.0


def added_up(single: Tensor, brought: Tensor, instance: Tensor) -> float:
    """Returns the share of the variance of what pieces brought ``[B]`` that ``single`` sums ``[B]`` explain."""
    return max(0.0, correlation(single, brought, instance)) ** 2


def reproducible(halves: Tensor, instance: Tensor) -> float:
    """Returns the share of the variance within instances of the mean of two measurements that others would show again.

    By the formula of Spearman and Brown, from two independent halves ``[2, B]``.
    """
    agreement = max(0.0, correlation(halves[0], halves[1], instance))
    return 2 * agreement / (1 + agreement)
