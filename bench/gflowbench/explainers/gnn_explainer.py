r"""GNNExplainer: a mask over the edges of each instance, learned for it alone.

Ying et al., *GNNExplainer: Generating Explanations for Graph Neural Networks*, NeurIPS 2019. Minimises for each
instance, over the logits of its mask :math:`m`,

.. math:: -\log P(c \mid m) + \lambda_{size} \sum_e m_e + \lambda_{entropy} \operatorname{mean}_e H(m_e)

The algorithm is PyG's. Adam works on every entry by itself and masks of different instances never meet, so one disjoint
union gives the very masks that PyG finds one by one (tested).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import MaskedModel, differentiable, parts
from gflowbench.explainers.peer import Peer
from gflowexplainer.ops.segments import segment_sum

TINY = 1e-15

SIZE = 0.05
"""Weight of the size of a mask."""

SIZES = {"ba-shapes": 0.005}
"""Another weight where that one shuts every mask, by dataset: chosen by the ground truth, in this peer's favour."""


@dataclass(kw_only=True, eq=False)
class GNNExplainer(Peer):
    """Learns one mask an instance; the features are left alone, as only edges are scored.

    Args:
        epochs: Updates of a mask.
        learning_rate: Of Adam; 0.1 in the authors' code, 0.01 in PyG.
        size: Weight of the sum of a mask; by default :data:`SIZE`, or what :data:`SIZES` says of the dataset. 0.005 in
            the authors' code and in PyG.
        entropy: Weight of the mean entropy of its entries; 1 in both. It was chosen by the ground truth, in this peer's
            favour.
    """

    name = "gnnexplainer"
    positive = ("epochs", "learning_rate")

    epochs: int = 100
    learning_rate: float = 0.1
    size: float | None = None
    entropy: float = 0.1

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Learns the masks of all instances."""
        size = SIZES.get(subject.name, SIZE) if self.size is None else self.size
        found = []
        with differentiable(subject.predictor):
            for part in parts(subject):
                graphs = MaskedModel.of(part)
                found.append(self._learn(graphs, self._initial(graphs, seed), size)[graphs.own])
        return Scores.of_edges(subject.instances, torch.cat(found).double())

    def _initial(self, graphs: MaskedModel, seed: int) -> Tensor:
        """Draws the logits to begin with, shape ``[w]``: Gaussian with variance 2 / nodes, as in PyG."""
        deviation = (2 / graphs.graphs.node_counts.double()).sqrt()[graphs.edge_owner]
        return (torch.special.ndtri(graphs.uniform(seed, 0)) * deviation).to(graphs.graphs.x.dtype)

    def _learn(self, graphs: MaskedModel, initial: Tensor, size: float) -> Tensor:
        """Learns the masks of several instances, shape ``[w]``; edges without any influence get 0."""
        mask = initial.clone().requires_grad_()
        optimizer = torch.optim.Adam([mask], lr=self.learning_rate)
        used = None
        for _ in range(self.epochs):
            optimizer.zero_grad()
            loss = graphs.losses(graphs(mask)).sum()
            if used is not None:
                loss = loss + self._penalty(mask[used], graphs.edge_owner[used], len(graphs.graphs), size)
            loss.backward()
            if used is None:
                assert mask.grad is not None
                used = torch.nonzero(mask.grad).flatten()
            optimizer.step()
        found = torch.zeros_like(initial)
        if used is not None:
            found[used] = mask.detach()[used].sigmoid()
        return found

    def _penalty(self, logits: Tensor, owner: Tensor, count: int, size: float) -> Tensor:
        mask = logits.sigmoid()
        entropy = -mask * (mask + TINY).log() - (1 - mask) * (1 - mask + TINY).log()
        edges = torch.bincount(owner, minlength=count).clamp(min=1)
        return size * mask.sum() + self.entropy * (segment_sum(entropy, owner, count) / edges).sum()
