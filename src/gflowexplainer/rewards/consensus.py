r"""The consensus reward: what preserves predictions in general, learned over many instances, summed up for a subgraph.

How strongly a subgraph preserves a prediction can be measured (:class:`~gflowexplainer.rewards.context.ContextReward`),
but the measurement is noisy and peculiar to the instance. What is common to all instances is not: a linear model with
few parameters, fitted to the measurements of random subgraphs of all instances at once, says what a node of some kind
and an edge between two kinds add to the log-odds of a prediction. The evidence of a subgraph is the sum over its nodes
and inner edges, and its reward the evidence *per node*, so that a subgraph gains nothing by growing beyond what speaks:

.. math:: \log R(s) = \frac{1}{|s|} \Big( \sum_{v \in s} w^\top f_v + \sum_{\{u, v\} \subseteq s,\, uv \in E}
          \big( w_e + f_u^\top W f_v \big) \Big)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import CheckpointError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_edges
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import segment_sum
from gflowexplainer.rewards.base import REMOVALS, Reward
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.evidence import Evidence, basis_of

RIDGE, PAIR_RIDGE = 1e-3, 1e-2
"""Penalties of standardised weights; edges by kinds are many and rare, so they are held back more."""
_LEAST_SPREAD = 0.2


@dataclass(frozen=True)
class Consensus:
    """What preserves predictions in general.

    Attributes:
        basis: Brings raw node evidence to kinds, shape ``[R, D]``.
        weight: Weights of a description, one row for each class and, last, one for all together, ``[C + 1, P]``.
        removal: What "without the rest" meant when it was measured.
        explained: Share of the variance of the measurements, within instances, that the model explains.
        spread: How much log-rewards differ in the instance in the middle of those that were fitted; 0 if not known.
    """

    basis: Tensor
    weight: Tensor
    removal: str
    explained: float
    spread: float = 0.0

    def weights_of(self, target: Target) -> Tensor:
        """Returns the weights of each instance, shape ``[I, P]``: those of the class that it holds."""
        if target.label is None:
            return self.weight[-1:].expand(target.prediction.size(0), -1)
        if int(target.label.max()) >= self.weight.size(0):
            raise CheckpointError(
                f"The consensus knows {self.weight.size(0) - 1} classes, but class {int(target.label.max())} is "
                "explained. It belongs to another model; fit again."
            )
        return self.weight[target.label]

    def tensors(self) -> dict[str, Tensor]:
        """Returns everything as tensors, for a section of a file."""
        facts = torch.tensor([REMOVALS.index(self.removal), self.explained, self.spread], dtype=torch.double)
        return {"basis": self.basis, "weight": self.weight, "facts": facts}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Consensus:
        """Reads what :meth:`tensors` gave."""
        try:
            removal, explained, spread = tensors["facts"].tolist()
            basis, weight = tensors["basis"], tensors["weight"]
            if basis.dim() != 2 or weight.dim() != 2 or int(removal) < 0:
                raise ValueError(f"basis {tuple(basis.shape)} and weights {tuple(weight.shape)} do not fit")
            return cls(basis, weight, REMOVALS[int(removal)], explained, spread)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise CheckpointError(
                f"The file holds no consensus reward, or one of another version ({error})."
            ) from error

    def to(self, device: torch.device | str) -> Consensus:
        """Moves the weights to ``device``."""
        return replace(self, basis=self.basis.to(device), weight=self.weight.to(device))


def learn_consensus(
    predictor: Predictor,
    instances: Instances,
    raw: Tensor,
    target: Target,
    subgraphs: Subgraphs,
    *,
    removals: Sequence[str],
    pooling: float,
    num_contexts: int,
    keep_probability: float,
    seed: int,
) -> Consensus:
    """Measures how strongly subgraphs preserve their predictions in context, and fits the linear model to it.

    Args:
        predictor: The explained model.
        instances: The instances.
        raw: Raw evidence of every node, shape ``[n, R]``.
        target: What is held.
        subgraphs: ``B`` subgraphs to measure, of all instances.
        removals: Candidate meanings of "without the rest"; the one whose measurements agree best between instances, by
            the share of variance explained, is taken.
        pooling: A class of so many instances is described half by its own weights and half by those of all classes;
            infinite to tell no classes apart.
        num_contexts: See :class:`ContextReward`.
        keep_probability: See :class:`ContextReward`.
        seed: Names the contexts.
    """
    basis = basis_of(raw)
    evidence = Evidence.of(instances, raw, basis)
    description = evidence.describe(subgraphs)
    ridge = torch.where(evidence.is_pair(), PAIR_RIDGE, RIDGE).double()
    classes = 0 if target.label is None else target.prediction.size(1)
    best: Consensus | None = None
    for removal in removals:
        measured = ContextReward(
            predictor,
            instances,
            target=target,
            removal=removal,
            num_contexts=num_contexts,
            keep_probability=keep_probability,
            average="odds",
            seed=seed,
        ).log_score(subgraphs)
        weight, explained = fit_weights(
            description, measured, subgraphs.instance, target.label, classes, ridge, pooling
        )
        if best is None or explained > best.explained:
            best = Consensus(basis, weight, removal, explained)
    assert best is not None
    return best


def fit_weights(
    description: Tensor,
    measured: Tensor,
    instance: Tensor,
    label: Tensor | None,
    num_classes: int,
    ridge: Tensor,
    pooling: float,
) -> tuple[Tensor, float]:
    """Fits measurements within each instance by least squares, classes partly pooled.

    All instances count alike, whatever the number of their subgraphs, and each has an intercept of its own.

    Args:
        description: Descriptions of ``B`` subgraphs, shape ``[B, P]``.
        measured: What was measured of each, shape ``[B]``.
        instance: Instance of each, shape ``[B]``.
        label: Class of each instance, shape ``[I]``; ``None`` for regression.
        num_classes: Number ``C`` of classes; 0 for regression.
        ridge: Penalty of each standardised weight, shape ``[P]``.
        pooling: See :func:`learn_consensus`.

    Returns:
        Weights ``[C + 1, P]``, the last row for all classes together, and the share of variance which that explains.
    """
    number = int(instance.max()) + 1
    share = 1 / torch.bincount(instance, minlength=number).clamp(min=1).double()[instance]

    def within(values: Tensor) -> Tensor:
        flat = values.double().reshape(values.size(0), -1)
        centred = flat - segment_sum(flat * share[:, None], instance, number)[instance]
        return centred.reshape(values.shape)

    columns, wanted = within(description), within(measured)
    total = float(share.sum())
    scale = ((columns.square() * share[:, None]).sum(dim=0) / total).sqrt()
    scale = torch.where(scale > 1e-9, scale, 1.0)
    columns = columns / scale
    weighted = columns * share[:, None]
    penalty = torch.diag(ridge)
    pooled = torch.linalg.solve(weighted.t() @ columns / total + penalty, weighted.t() @ wanted / total)
    residual = wanted - columns @ pooled
    variance = float((share * wanted.square()).sum())
    explained = 1 - float((share * residual.square()).sum()) / variance if variance > 0 else 0.0
    rows = []
    for c in range(num_classes):
        if label is None or math.isinf(pooling):
            rows.append(pooled)
            continue
        own = label[instance] == c
        if not own.any():
            rows.append(pooled)  # the limit of ever weaker pooling, also where there is none
            continue
        here = columns[own].t() * share[own]
        count = float(share[own].sum())
        left = here @ columns[own] + count * penalty + pooling * torch.eye(len(scale)).to(columns)
        rows.append(torch.linalg.solve(left, here @ wanted[own] + pooling * pooled))
    return torch.stack([*rows, pooled]) / scale, explained


class ConsensusReward(Reward):
    """The evidence per node of a subgraph, as a :class:`Consensus` sees it. It asks the model nothing.

    Args:
        predictor: The explained model.
        instances: The instances.
        consensus: What was learned.
        raw: Raw evidence of every node, shape ``[n, R]``.
        **settings: See :class:`Reward`.
    """

    def __init__(
        self, predictor: Predictor, instances: Instances, *, consensus: Consensus, raw: Tensor, **settings: Any
    ) -> None:
        super().__init__(predictor, instances, **{**settings, "removal": consensus.removal})
        evidence = Evidence.of(instances, raw, consensus.basis)
        weight = consensus.weights_of(self.target)
        if weight.size(1) != evidence.num_columns:
            raise CheckpointError(
                f"The consensus has {weight.size(1)} weights for descriptions of {evidence.num_columns} numbers. It "
                "belongs to another model or another version; fit again."
            )
        self.consensus = consensus
        self.node_value, self.entry_value = evidence.node_values(weight), evidence.entry_values(weight)

    def node_values(self) -> Tensor:
        """Returns what speaks for each node, itself and its edges on average, in units of log-reward, ``[n, 2]``."""
        instances = self.instances
        edges = segment_sum(self.entry_value, instances.neighbor_row, instances.num_nodes)
        edges = edges / instances.degree.clamp(min=1)
        return self.temper(torch.stack([self.node_value, edges], dim=1), instances.owner)

    def settle_spread(self) -> None:
        """Puts a bound below the spread of each instance: a share of the usual one, of the instances fitted on.

        A few random subgraphs may miss the one node that matters. What is left then would make its reward enormous.
        """
        if not self.consensus.spread:
            self.consensus = replace(self.consensus, spread=float(self.spread.median()))
        self.spread = self.spread.clamp(min=_LEAST_SPREAD * self.consensus.spread)

    def log_score(self, subgraphs: Subgraphs) -> Tensor:
        """See :class:`Reward`; nothing is cached, as looking it up would cost what computing it does."""
        self.num_requests += len(subgraphs)
        return self._log_score(subgraphs)

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        filled = subgraphs.filled
        nodes = torch.where(filled, self.node_value[subgraphs.members.clamp(min=0)], 0).sum(dim=1)
        inner = inner_edges(self.instances, subgraphs)
        # An edge has the same value seen from either end.
        nodes.index_add_(0, inner.subgraph, self.entry_value[inner.entry])
        return nodes / filled.sum(dim=1).clamp(min=1)
