r"""Gradients of links: what the score of a link owes to each edge.

As for nodes and graphs (:mod:`gflowbench.explainers.gradients`), with the message along edge :math:`e` multiplied by
:math:`m_e`: the size of :math:`\partial f / \partial m_e` at :math:`m = 1`, and its integral from no edges to all.
Gradient times input is taken at the features of nodes and carried to edges.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.explain.algorithm.utils import set_hetero_masks, set_masks

from gflowbench.explainers.masked_model import masks_alone
from gflowbench.typed.link_explainers import LinkAnswers
from gflowbench.typed.link_truth import RELATION, EdgeType, LinkTruth

Masks = dict[EdgeType, Tensor]


def saliency(task: LinkTruth, seed: int) -> LinkAnswers:
    """Scores an edge by how fast the score of the link changes with its mask, whichever way."""
    return _attributed(task, lambda link: {key: value.abs() for key, value in _gradient(task, link, 1.0).items()})


def integrated_gradients(task: LinkTruth, seed: int, steps: int = 20) -> LinkAnswers:
    """Scores an edge by its share of the score of the link, from no edges to all, by Gauss-Legendre quadrature."""
    points, weights = np.polynomial.legendre.leggauss(steps)

    def attribute(link: Tensor) -> Masks:
        total = {key: torch.zeros(edges.size(1)) for key, edges in task.edge_index.items()}
        for point, weight in zip(points, weights, strict=True):
            for key, value in _gradient(task, link, 0.5 * (1 + float(point))).items():
                total[key] += 0.5 * float(weight) * value
        return total

    return _attributed(task, attribute)


def gradient_x_input(task: LinkTruth, seed: int) -> LinkAnswers:
    r"""Scores an edge by the mean of its ends, a node by :math:`x_v \cdot \partial f / \partial x_v`.

    Shrikumar et al., *Not Just a Black Box*, 2016.
    """

    def attribute(link: Tensor) -> Masks:
        nodes = _input_shares(task, link)
        return {key: (nodes[key[0]][edges[0]] + nodes[key[2]][edges[1]]) / 2 for key, edges in task.edge_index.items()}

    return _attributed(task, attribute)


def _attributed(task: LinkTruth, attribute: Callable[[Tensor], Masks]) -> LinkAnswers:
    begin, scores = time.perf_counter(), []
    with masks_alone(task.model):
        for link, around in zip(task.test.t(), task.around, strict=True):
            found = attribute(link)
            scores.append({(key, place): float(found[key][place]) for key, place in around})
    return LinkAnswers(scores, 0.0, (time.perf_counter() - begin) / task.test.size(1))


def _gradient(task: LinkTruth, link: Tensor, value: float) -> Masks:
    """Differentiates the score of a link ``[2]`` where all masks have one value, by relation."""
    graph = task.graph
    masks = {key: torch.full((edges.size(1),), value, requires_grad=True) for key, edges in task.edge_index.items()}
    if task.is_plain:
        (mask,) = masks.values()
        set_masks(task.model, mask, graph.edge_index, apply_sigmoid=False)
        score = task.model(graph.x, graph.edge_index, link[:, None])
    else:
        set_hetero_masks(task.model, masks, task.edge_index, apply_sigmoid=False)
        score = task.model(graph.x_dict, graph.edge_index_dict, link[:, None])
    found = torch.autograd.grad(score.sum(), list(masks.values()), allow_unused=True)
    return {
        key: torch.zeros_like(mask) if value is None else value
        for (key, mask), value in zip(masks.items(), found, strict=True)
    }


def _input_shares(task: LinkTruth, link: Tensor) -> dict[str, Tensor]:
    """Multiplies the features of each node by the gradient of the score of a link ``[2]``, by type, shapes ``[N]``."""
    graph = task.graph
    given = {RELATION[0]: graph.x} if task.is_plain else graph.x_dict
    x = {kind: features.detach().clone().requires_grad_() for kind, features in given.items()}
    if task.is_plain:
        score = task.model(x[RELATION[0]], graph.edge_index, link[:, None])
    else:
        score = task.model(x, graph.edge_index_dict, link[:, None])
    found = torch.autograd.grad(score.sum(), list(x.values()), allow_unused=True)
    return {
        kind: features.new_zeros(features.size(0)) if value is None else (features.detach() * value).sum(dim=1)
        for (kind, features), value in zip(x.items(), found, strict=True)
    }
