r"""Saliency and integrated gradients over edge masks: what the model's score of the class owes to each edge.

With :math:`f_c(m)` the score of the predicted class when message :math:`e` is multiplied by :math:`m_e`:

- saliency (Simonyan et al., 2014) is :math:`|\partial f_c / \partial m_e|` at :math:`m = 1`, the graph as it is;
- integrated gradients (Sundararajan et al., 2017) is :math:`\int_0^1 \partial f_c / \partial m_e (t \cdot 1)\, dt`, by
  Gauss-Legendre quadrature: how much of the score the edge brings on the way from no edges to all.

Both are what PyG's ``CaptumExplainer`` computes one by one with the package captum, which is not needed here: instances
do not meet in a disjoint union, so one backward call gives the gradients of all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import MaskedModel, check_max_nodes, check_positive, differentiable, parts


class Gradient(ABC):
    """Scores edges by gradients with respect to their masks.

    Args:
        max_nodes: Size bound; without meaning for an explainer that scores every edge.
    """

    name = "gradient"
    deterministic = True

    def __init__(self, *, max_nodes: int | None = None) -> None:
        check_max_nodes(max_nodes)

    def fit(self, subject: Subject, seed: int) -> None:  # noqa: B027 - gradients are not learned
        """Does nothing."""

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores every edge."""
        found = []
        with differentiable(subject.predictor):
            for part in parts(subject):
                graphs = MaskedModel.of(part)
                found.append(self._attribute(graphs)[graphs.own])
        return Scores.of_edges(subject.instances, torch.cat(found).double())

    @abstractmethod
    def _attribute(self, graphs: MaskedModel) -> Tensor:
        """Returns the share of each edge, shape ``[w]``."""


class Saliency(Gradient):
    """Scores an edge by how fast the score of the class changes with its mask, whichever way."""

    name = "saliency"

    def _attribute(self, graphs: MaskedModel) -> Tensor:
        return gradient(graphs, 1.0).abs()


class IntegratedGradients(Gradient):
    """Scores an edge by its share of the score of the class, from no edges to all.

    Args:
        steps: Points of the quadrature.
        max_nodes: Size bound; without meaning for an explainer that scores every edge.
    """

    name = "integrated-gradients"

    def __init__(self, *, steps: int = 50, max_nodes: int | None = None) -> None:
        super().__init__(max_nodes=max_nodes)
        check_positive(steps=steps)
        self.steps = steps

    def _attribute(self, graphs: MaskedModel) -> Tensor:
        points, weights = np.polynomial.legendre.leggauss(self.steps)
        total = graphs.graphs.x.new_zeros(graphs.edge_owner.numel())
        for point, weight in zip(points, weights, strict=True):
            total += 0.5 * float(weight) * gradient(graphs, 0.5 * (1 + float(point)))
        return total


def gradient(graphs: MaskedModel, value: float) -> Tensor:
    """Differentiates the score of the class of each instance where all masks have one value, shape ``[w]``.

    The score is what the model returns of that class; for a binary classifier its probability, for a regression the
    sum of the values.
    """
    mask = graphs.graphs.x.new_full((graphs.edge_owner.numel(),), value).requires_grad_()
    output = graphs(mask, sigmoid=False)
    if graphs.target.label is None:
        score = output.sum()
    else:
        if graphs.predictor.mode == "binary_classification":
            output = graphs.predictor.read(output)
        score = output.gather(1, graphs.target.label[:, None]).sum()
    return torch.autograd.grad(score, mask)[0]
