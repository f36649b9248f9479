r"""Saliency and integrated gradients: what the score of the class owes to each edge, or to each node's features.

With :math:`f_c(m)` the score of the predicted class when message :math:`e` is multiplied by :math:`m_e`, or the
features of a node by :math:`m_v`:

- saliency (Simonyan et al., 2014) is :math:`|\partial f_c / \partial m_e|` at :math:`m = 1`, the graph as it is; of
  features it is the length of :math:`\partial f_c / \partial x_v`;
- integrated gradients (Sundararajan et al., 2017) is :math:`\int_0^1 \partial f_c / \partial m_e (t \cdot 1)\, dt`, by
  Gauss-Legendre quadrature: how much of the score it brings on the way from nothing to the whole.

Over edges both are what PyG's ``CaptumExplainer`` computes one by one with the package captum, which is not needed
here: instances do not meet in a disjoint union, so one backward call gives the gradients of all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import MaskedModel, differentiable, parts
from gflowbench.explainers.peer import Peer
from gflowexplainer.errors import one_of

OF = ("edges", "features")


@dataclass(kw_only=True, eq=False)
class Gradient(Peer):
    """Scores edges or nodes by gradients.

    Args:
        of: ``"edges"``: with respect to edge masks. ``"features"``: with respect to the features of nodes.
    """

    deterministic = True
    signed: ClassVar[bool] = False

    of: str = "edges"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("of", self.of, OF)

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores every edge, or every node."""
        found = []
        with differentiable(subject.predictor):
            for part in parts(subject):
                graphs = MaskedModel.of(part)
                if self.of == "edges":
                    found.append(self._attribute(partial(gradient, graphs))[graphs.own])
                    continue
                x = graphs.graphs.rows()
                values = self._attribute(partial(feature_gradient, graphs, x), x)
                outside = part.instances.place_outside
                found.append(values if outside is None else values[outside])
        values = torch.cat(found).double()
        if self.of == "edges":
            return Scores.of_edges(subject.instances, values)
        scores = Scores.of_nodes(subject.instances, values if subject.target.label is not None else values.abs())
        return Scores(scores.node, scores.edge, signed=values if self.signed else None)

    @abstractmethod
    def _attribute(self, gradient: Callable[[float], Tensor], x: Tensor | None = None) -> Tensor:
        """Returns the share of each edge or node.

        Args:
            gradient: The gradient where all masks have one value, or the features so much of their own.
            x: Features of the nodes, ``[N, F]``, where it is a gradient of features.
        """


class Saliency(Gradient):
    """Scores by how fast the score of the class changes, whichever way."""

    name = "saliency"

    def _attribute(self, gradient: Callable[[float], Tensor], x: Tensor | None = None) -> Tensor:
        found = gradient(1.0)
        return found.abs() if x is None else found.norm(dim=1)


@dataclass(kw_only=True, eq=False)
class IntegratedGradients(Gradient):
    """Scores by the share of the score of the class, from nothing to the whole.

    Args:
        steps: Points of the quadrature.
        of: As of :class:`Gradient`.
    """

    name = "integrated-gradients"
    signed = True
    positive = ("steps",)

    steps: int = 50

    def _attribute(self, gradient: Callable[[float], Tensor], x: Tensor | None = None) -> Tensor:
        found = integrated(gradient, self.steps)
        return found if x is None else (found * x).sum(dim=1)


def integrated(gradient: Callable[[float], Tensor], steps: int) -> Tensor:
    """Integrates a gradient over (0, 1) by Gauss-Legendre quadrature with ``steps`` points."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    values = [0.5 * float(w) * gradient(0.5 * (1 + float(p))) for p, w in zip(points, weights, strict=True)]
    return torch.stack(values).sum(dim=0)


def gradient(graphs: MaskedModel, value: float) -> Tensor:
    """Differentiates the score of the class of each instance where all edge masks have one value, shape ``[w]``."""
    mask = graphs.graphs.x.new_full((graphs.edge_owner.numel(),), value).requires_grad_()
    return torch.autograd.grad(_score(graphs, graphs(mask, sigmoid=False)), mask)[0]


def feature_gradient(graphs: MaskedModel, x: Tensor, share: float) -> Tensor:
    """Differentiates the score of the class of each instance by node features at a share of ``x``, shape ``[N, F]``."""
    x = (share * x.detach()).requires_grad_()
    return torch.autograd.grad(_score(graphs, graphs.evaluate(graphs.graphs.edge_index, x=x)), x)[0]


def _score(graphs: MaskedModel, output: Tensor) -> Tensor:
    """Adds up the scores of the instances.

    The score is what the model returns of the class; for a binary classifier its probability, for a regression the
    sum of the values.
    """
    if graphs.target.label is None:
        return output.sum()
    if graphs.predictor.mode == "binary_classification":
        output = graphs.predictor.read(output)
    return output.gather(1, graphs.target.label[:, None]).sum()
