r"""KernelSHAP over nodes and over edges (GNNShap): Shapley values by weighted least squares on sampled coalitions.

Lundberg & Lee, *A Unified Approach to Interpreting Model Predictions*, NeurIPS 2017; with edges as players and many
coalitions in one batch: Akkas & Azad, *GNNShap*, WWW 2024. The Shapley values :math:`\phi` of :math:`M` players are the
solution of

.. math::
    \min_\phi \sum_z \pi(z) \bigl(v(z) - v(\emptyset) - z \cdot \phi\bigr)^2 \quad \text{with} \quad
    \sum_i \phi_i = v(1) - v(\emptyset), \qquad \pi(z) = \frac{M - 1}{\binom{M}{|z|}\,|z|\,(M - |z|)}

over all coalitions :math:`z` that are neither empty nor whole. Where there are no more of them than samples, all are
taken, and the values are exact. Otherwise sizes are drawn in proportion to the weight of all coalitions of a size, half
of the samples are the complements of the others, and every sample counts the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gflowbench.explainers.coalition_games import EdgeGame, Game, NodeGame, SubjectGame
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import parts
from gflowbench.explainers.peer import Peer
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import pointers

RIDGE = 1e-6
"""Share of the mean diagonal that is added to it, so that fewer samples than players have a solution: the smallest."""


@dataclass(kw_only=True, eq=False)
class KernelShap(Peer):
    """Scores nodes by their Shapley values.

    Args:
        num_samples: Coalitions of each instance.
    """

    name = "kernelshap"
    positive = ("num_samples",)
    game: ClassVar[Callable[[Subject], SubjectGame]] = NodeGame

    num_samples: int = 512

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores by the contribution to the probability of the class; of a regression, by its absolute size."""
        found = []
        for part in parts(subject):
            game = type(self).game(part)
            values = shapley_values(game, self.num_samples, seed)
            found.append(game.spread(values.abs() if part.target.label is None else values))
        return self.scores(subject, torch.cat(found))

    def scores(self, subject: Subject, values: Tensor) -> Scores:
        """Makes scores of the values of nodes."""
        return Scores.of_nodes(subject.instances, values)


class GNNShap(KernelShap):
    """Scores edges by their Shapley values."""

    name = "gnnshap"
    game: ClassVar[Callable[[Subject], SubjectGame]] = EdgeGame

    def scores(self, subject: Subject, values: Tensor) -> Scores:
        """Makes scores of the values of edges."""
        return Scores.of_edges(subject.instances, values)


def shapley_values(game: Game, num_samples: int, seed: int) -> Tensor:
    """Estimates the Shapley values of all players, shape ``[P]``; exact where all coalitions are few enough.

    Args:
        game: The games of some instances.
        num_samples: Coalitions of each instance at most.
        seed: Names the draws, which depend on no other instance.
    """
    present, weight = coalitions(game, num_samples, seed)
    worth = game.worth(present)
    none, whole = game.worth(torch.stack([torch.zeros_like(present[0]), torch.ones_like(present[0])]))
    values = torch.zeros(game.owner.numel(), dtype=torch.double, device=game.owner.device)
    first = pointers(game.counts).tolist()
    for instance, (begin, end) in enumerate(pairwise(first)):
        gain = worth[:, instance] - none[instance]
        total = whole[instance] - none[instance]
        values[begin:end] = solve_game(present[:, begin:end].double(), weight[:, instance], gain, total)
    return values


def coalitions(game: Game, num_samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Chooses coalitions, all of them where there are no more than ``num_samples``.

    Returns:
        Which players are there, shape ``[S, P]``, and the weight of each coalition, shape ``[S, I]``; 0 for rows that
        an instance does not need.
    """
    owner, counts = game.owner, game.counts
    device = owner.device
    present = torch.zeros(num_samples, owner.numel(), dtype=torch.bool, device=device)
    weight = torch.zeros(num_samples, counts.numel(), dtype=torch.double, device=device)
    first = pointers(counts).tolist()
    for instance, count in enumerate(counts.tolist()):
        if count < 2:
            continue
        begin, end = first[instance], first[instance + 1]
        chosen, counts_as = choose_coalitions(game.key[begin:end], game.own_key[instance], num_samples, seed)
        present[: len(chosen), begin:end] = chosen
        weight[: len(chosen), instance] = counts_as
    rows = max(int((weight > 0).any(dim=1).sum()), 1)
    return present[:rows], weight[:rows]


def choose_coalitions(player: Tensor, instance: Tensor, num_samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Chooses coalitions of one game, all of them where there are no more than ``num_samples``.

    Args:
        player: A number that names each of at least two players, shape ``[M]``.
        instance: A number that names the game.
        num_samples: Coalitions at most.
        seed: Names the draws.

    Returns:
        Which players are there, shape ``[S, M]``, and the weight of each coalition, shape ``[S]``.
    """
    count, device = player.numel(), player.device
    if count < 31 and 2**count - 2 <= num_samples:
        bits = torch.arange(1, 2**count - 1, device=device)
        chosen = (bits[:, None] >> torch.arange(count, device=device)) & 1 > 0
        table = torch.tensor([_kernel(count, size) for size in range(count + 1)], dtype=torch.double, device=device)
        return chosen, table[chosen.sum(dim=1)]
    chosen = _draw(count, player, instance, num_samples, seed)
    return chosen, torch.ones(len(chosen), dtype=torch.double, device=device)


def _draw(count: int, player: Tensor, instance: Tensor, num_samples: int, seed: int) -> Tensor:
    """Draws coalitions of ``count`` players and their complements, shape ``[num_samples, count]``."""
    half = (num_samples + 1) // 2
    sample = torch.arange(half, device=player.device)
    size = torch.arange(1, count, device=player.device, dtype=torch.double)
    share = torch.cumsum(1 / (size * (count - size)), 0)
    wanted = torch.searchsorted(share / share[-1], uniform(seed, instance, sample, 0)).clamp(max=count - 2) + 1
    place = uniform(seed, instance, sample[:, None], player).argsort(dim=1).argsort(dim=1)
    chosen = place < wanted[:, None]
    return torch.stack([chosen, ~chosen], dim=1).flatten(0, 1)[:num_samples]


def _kernel(count: int, size: int) -> float:
    """Returns the weight of a coalition of ``size`` of ``count`` players; 0 for the empty and the whole one."""
    return (count - 1) / (math.comb(count, size) * size * (count - size)) if 0 < size < count else 0.0


def solve_game(present: Tensor, weight: Tensor, gain: Tensor, total: Tensor) -> Tensor:
    """Solves the weighted least squares of one game under the constraint that the values add up to ``total``.

    Args:
        present: Which of ``M`` players are there in ``S`` coalitions, as numbers, shape ``[S, M]``.
        weight: Weight of each coalition, shape ``[S]``.
        gain: What each is worth beyond the empty one, shape ``[S]``.
        total: What the whole is worth beyond the empty one.

    Returns:
        The values of the players, shape ``[M]``.
    """
    count = present.size(1)
    if count < 2:
        return total.expand(count)
    weighted = present * weight[:, None]
    matrix = weighted.T @ present
    matrix += RIDGE * matrix.diagonal().mean() * torch.eye(count, dtype=matrix.dtype, device=matrix.device)
    right = torch.stack([weighted.T @ gain, torch.ones_like(matrix[0])], dim=1)
    free, ones = torch.linalg.solve(matrix, right).unbind(dim=1)
    return free - ones * (free.sum() - total) / ones.sum()
