r"""Occlusion and Shapley values of edges: what the score of a link loses without some of the edges that it depends on.

The players are the directed edges of the computation graph, which is cut out and evaluated in many copies at once. As
GNNShap does (Akkas & Azad, WWW 2024), Shapley values are fitted by weighted least squares to coalitions of edges
(:mod:`gflowbench.explainers.kernel_shap`); what is shared out is the raw score of the link.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowbench.explainers.kernel_shap import choose_coalitions, solve_game
from gflowbench.typed.cut_links import CutLink, cut_link
from gflowbench.typed.link_explainers import LinkScores
from gflowbench.typed.link_gradients import attributed
from gflowbench.typed.link_truth import LinkTruth
from gflowexplainer.errors import ConfigError


def occlusion(task: LinkTruth, seed: int) -> LinkScores:
    """Scores an edge by what the score of the link loses when it alone is taken away."""

    def lost(cut: CutLink) -> Tensor:
        kept = torch.cat([torch.ones(1, cut.num_edges), 1 - torch.eye(cut.num_edges)]).bool()
        found = cut.scores(kept)
        return found[0] - found[1:]

    return attributed(task, lost)


def gnn_shap(task: LinkTruth, seed: int, num_samples: int = 512) -> LinkScores:
    """Scores an edge by its Shapley value, exact where all coalitions are no more than ``num_samples``."""
    if num_samples < 1:
        raise ConfigError(f"'num_samples' must be at least 1 (got {num_samples}).")
    scores = []
    for number, (link, around) in enumerate(zip(task.test.t(), task.around, strict=True)):
        values = shapley_of_edges(cut_link(task, link, around), num_samples, seed, number)
        scores.append(dict(zip(around, values.tolist(), strict=True)))
    return scores


def shapley_of_edges(cut: CutLink, num_samples: int, seed: int, number: int = 0) -> Tensor:
    """Estimates the Shapley values of the edges of a link, shape ``[E]``; seed and number name the draws."""
    ends = torch.stack([torch.zeros(cut.num_edges, dtype=torch.bool), torch.ones(cut.num_edges, dtype=torch.bool)])
    none, whole = cut.scores(ends).double()
    if cut.num_edges < 2:
        return (whole - none).expand(cut.num_edges)
    present, weight = choose_coalitions(torch.arange(cut.num_edges), torch.tensor(number), num_samples, seed)
    return solve_game(present.double(), weight, cut.scores(present).double() - none, whole - none)
