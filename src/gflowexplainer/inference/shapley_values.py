"""Shapley values of a game that is played on a model: exact where players are few, else by permutations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial

import torch
from torch import Tensor


@dataclass(frozen=True)
class ShapleyValues:
    """Shapley values of ``d`` players.

    Attributes:
        value: The values, shape ``[d]``; they add up to ``whole - bare``.
        error: Standard error of each, shape ``[d]``; 0 where they are exact.
        whole: What all players together get.
        bare: What nobody gets.
        evaluations: Coalitions that were evaluated.
    """

    value: Tensor
    error: Tensor
    whole: float
    bare: float
    evaluations: int


def shapley_values(
    num_players: int, play: Callable[[Tensor], Tensor], *, evaluations: int, seed: int = 0
) -> ShapleyValues:
    """Computes Shapley values: exactly if all coalitions are no more than ``evaluations``, otherwise by sampling.

    Permutations are drawn in pairs, each with its reverse, which lessens the variance and keeps the sum exact.

    Args:
        num_players: ``d``.
        play: Values ``[Q]`` of coalitions, bool ``[Q, d]``.
        evaluations: Coalitions to evaluate, about; one pair of permutations at least.
        seed: Seed of the permutations.
    """
    if num_players == 0:
        alone = float(play(torch.zeros(1, 0, dtype=torch.bool))[0])
        nothing = torch.zeros(0, dtype=torch.double)
        return ShapleyValues(nothing, nothing, alone, alone, 1)
    if num_players < 31 and 1 << num_players <= evaluations:
        return _exact(num_players, play)
    return _sampled(num_players, play, evaluations, seed)


def _exact(d: int, play: Callable[[Tensor], Tensor]) -> ShapleyValues:
    number = torch.arange(1 << d)
    coalition = (number[:, None] >> torch.arange(d)) & 1 == 1
    value = play(coalition).double().cpu()
    size = coalition.sum(dim=1)
    weight = torch.tensor([factorial(s) * factorial(d - s - 1) / factorial(d) for s in range(d)], dtype=torch.double)
    found = []
    for player in range(d):
        without = torch.nonzero(~coalition[:, player]).flatten()
        gain = value[without | (1 << player)] - value[without]
        found.append((weight[size[without]] * gain).sum())
    total = torch.stack(found)
    return ShapleyValues(total, torch.zeros_like(total), float(value[-1]), float(value[0]), len(number))


def _sampled(d: int, play: Callable[[Tensor], Tensor], evaluations: int, seed: int) -> ShapleyValues:
    generator = torch.Generator().manual_seed(seed)
    pairs = max(2, (evaluations - 2) // (2 * max(d - 1, 1)))
    orders = torch.stack([torch.randperm(d, generator=generator) for _ in range(pairs)])
    orders = torch.stack([orders, orders.flip(1)], dim=1).flatten(0, 1)  # [P, d]
    rank = torch.argsort(orders, dim=1)
    steps = torch.arange(1, d)
    inner = rank[:, None, :] < steps[None, :, None]  # [P, d - 1, d]: the first 1, 2, ... players of each order
    ends = play(torch.stack([torch.zeros(d, dtype=torch.bool), torch.ones(d, dtype=torch.bool)])).double().cpu()
    middle = play(inner.reshape(-1, d)).double().cpu().reshape(len(orders), d - 1)
    bare, whole = ends[0].expand(len(orders), 1), ends[1].expand(len(orders), 1)
    gain = torch.cat([bare, middle, whole], dim=1).diff(dim=1)  # of the player at each place
    each = torch.gather(gain, 1, rank).reshape(pairs, 2, d).mean(dim=1)
    error = each.std(dim=0) / pairs**0.5
    return ShapleyValues(each.mean(dim=0), error, float(ends[1]), float(ends[0]), 2 + middle.numel())
