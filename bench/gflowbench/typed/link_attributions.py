r"""Attributions of links: what the score of a link owes to each of the edges that it depends on.

Gradients are as for nodes and graphs (:mod:`gflowbench.explainers.gradients`), with the message along edge :math:`e`
multiplied by :math:`m_e`: the size of :math:`\partial f / \partial m_e` at :math:`m = 1`, and its integral from no
edges to all. Gradient times input is taken at the features of nodes and carried to edges.

For occlusion and Shapley values edges are really removed: the computation graph is cut out and evaluated in many copies
at once. As GNNShap does (Akkas & Azad, WWW 2024), Shapley values are fitted by weighted least squares to coalitions of
directed edges (:mod:`gflowbench.explainers.kernel_shap`); what is shared out is the raw score of the link.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import torch
from torch import Tensor

from gflowbench.explainers.gradients import integrated
from gflowbench.explainers.kernel_shap import shapley_values
from gflowbench.explainers.masked_model import masks_alone
from gflowbench.explainers.peer import check_positive
from gflowbench.typed.cut_links import CutLink, LinkGame, cut_link
from gflowbench.typed.link_task import LinkScores, LinkTask


def saliency(task: LinkTask, seed: int) -> LinkScores:
    """Scores an edge by how fast the score of the link changes with its mask, whichever way."""
    return attributed(task, lambda cut: _gradient(cut, 1.0).abs())


def integrated_gradients(task: LinkTask, seed: int, steps: int = 20) -> LinkScores:
    """Scores an edge by its share of the score of the link, from no edges to all."""
    return attributed(task, lambda cut: integrated(lambda value: _gradient(cut, value), steps))


def gradient_x_input(task: LinkTask, seed: int) -> LinkScores:
    r"""Scores an edge by the mean of its ends, a node by :math:`x_v \cdot \partial f / \partial x_v`.

    Shrikumar et al., *Not Just a Black Box*, 2016.
    """
    return attributed(task, _input_shares)


def occlusion(task: LinkTask, seed: int) -> LinkScores:
    """Scores an edge by what the score of the link loses when it alone is taken away."""
    return attributed(task, lambda cut: LinkGame(cut).losses())


def gnn_shap(task: LinkTask, seed: int, num_samples: int = 512) -> LinkScores:
    """Scores an edge by its Shapley value, exact where all coalitions are no more than ``num_samples``."""
    check_positive(num_samples=num_samples)
    number = count()
    return attributed(task, lambda cut: shapley_values(LinkGame(cut, next(number)), num_samples, seed))


def attributed(task: LinkTask, attribute: Callable[[CutLink], Tensor]) -> LinkScores:
    """Scores the edges around each link to explain by a function of the link cut out, ``[E]``."""
    scores = []
    with masks_alone(task.model):
        for link, around in zip(task.test.t(), task.around, strict=True):
            values = attribute(cut_link(task, link, around))
            scores.append(dict(zip(around, values.tolist(), strict=True)))
    return scores


def _gradient(cut: CutLink, value: float) -> Tensor:
    """Differentiates the score of a link where all masks have one value, ``[E]``."""
    mask = torch.full((cut.num_edges,), value, requires_grad=True)
    return torch.autograd.grad(cut.masked_score(mask), mask)[0]


def _input_shares(cut: CutLink) -> Tensor:
    """Multiplies features by the gradient of the score of a link, and brings that to the edges, ``[E]``."""
    x = {kind: features.detach().clone().requires_grad_() for kind, features in cut.x.items()}
    score = cut.evaluate(x, cut.edge_index, cut.link[:, None]).sum()
    found = torch.autograd.grad(score, list(x.values()), allow_unused=True)
    share = {
        kind: features.new_zeros(features.size(0)) if value is None else (features.detach() * value).sum(dim=1)
        for (kind, features), value in zip(x.items(), found, strict=True)
    }
    values = torch.zeros(cut.num_edges)
    for key, edges in cut.edge_index.items():
        values[cut.place[key]] = (share[key[0]][edges[0]] + share[key[2]][edges[1]]) / 2
    return values
