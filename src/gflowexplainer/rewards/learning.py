"""Learns a consensus, and finds out by which evidence: what predicts the model best where it was not fitted.

Candidates differ in what nodes are told apart by, in how much of the rest the contexts keep (near the whole graph they
show what is needed, smaller ones what suffices), in what "without the rest" means, and in whether classes have weights
of their own. Each is fitted to half of the instances and scored on the other half, both ways, or to more of few: the
share of the variance within instances that it explains. Which one is taken is decided in
:mod:`~gflowexplainer.rewards.belief`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType, Removal
from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import segment_argmax, segment_max
from gflowexplainer.rewards.belief import COHESION, choose, is_a_place, is_lacking, weight_beside
from gflowexplainer.rewards.best_rated import Effect, effect_of
from gflowexplainer.rewards.cohesion import cohesion_of
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.evidence import (
    Evidence,
    basis_of,
    find_names_of,
    has_own_class,
    has_shared,
    num_relations,
    raw_evidence,
    ridge_of,
    tells_by_features,
)
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.gradient_share import find_gradient_share
from gflowexplainer.rewards.gradients import GradientShare
from gflowexplainer.rewards.least_squares import LeastSquares, Restraint, held_out
from gflowexplainer.rewards.likeness import PLAINLY, find_likeness
from gflowexplainer.rewards.measuring import Measurements, Measuring, measure_gradients
from gflowexplainer.rewards.occlusion import NodeLosses

KEPT = (0.5, 0.8)
"""Shares of the nodes that contexts keep, where it is not given."""
FEW, RARE = 3, 0.1
"""Predictions, and their share, that have to be of other classes than the most frequent one for classes to teach each
other; fewer may be nothing but the model's mistakes."""
LOOSER = (1.0, 0.1, 0.01)
"""Shares of the pooling of classes that are tried: a few instances of each may show that the classes differ."""
MOSTLY = 0.75
"""Share that a class's own weights have in its description where pooling is weakest: what holds a default class is
nothing in particular, and only the other classes show what the model looks at."""
CAUTION, WORTH = (1.0, 10.0, 100.0), 0.05
"""What penalties are multiplied by, and how much more of the variance has to be explained for a larger one to be
taken: weights of many kinds, learned from few instances, may describe these and no others."""
_FOLD = 2


@dataclass(frozen=True)
class Candidates:
    """What a consensus is chosen from.

    Attributes:
        evidence: ``"auto"`` or the one kind of evidence that is used.
        keep_probabilities: Shares of the nodes that contexts may keep.
        removals: Meanings of "without the rest".
        pooling: A class of so many instances is described half by its own weights and half by those of all classes;
            less is tried too.
        gradients: Whether what gradients say of features is tried too.
        folds: Parts of the instances, each of which is described by what the others have taught.
        enough: Subgraphs; where fewer were measured, weights are penalised the more.
    """

    evidence: EvidenceType = EvidenceType.auto
    keep_probabilities: Sequence[float] = KEPT
    removals: Sequence[str] = ("induced",)
    pooling: float = 30.0
    gradients: bool = False
    folds: int = 2
    enough: int = 0

    def kinds(self, inputs: TaskInputs, names: Tensor) -> tuple[EvidenceType, ...]:
        """Returns the kinds of evidence that instances allow, some of whose features are ``names``; links have one."""
        if inputs.instances.other_end is not None:
            return (EvidenceType.shared,)
        if self.evidence != EvidenceType.auto:
            return (self.evidence,)
        if not has_shared(inputs, names):
            return (EvidenceType.own,)
        shared = (EvidenceType.shared, EvidenceType.features) if tells_by_features(inputs) else (EvidenceType.shared,)
        return (*shared, EvidenceType.both, EvidenceType.own)

    def poolings(self, label: Tensor) -> list[float]:
        """Returns the strengths of pooling that are tried for instances of some classes ``[I]``, strongest first."""
        mostly = label.numel() / torch.unique(label).numel() * (1 / MOSTLY - 1)
        return sorted({max(self.pooling * share, min(self.pooling, mostly)) for share in LOOSER}, reverse=True)


class Description(NamedTuple):
    """What ``B`` subgraphs are made of, by one kind of evidence.

    Attributes:
        basis: Brings raw evidence of nodes to kinds, shape ``[R, D]``.
        rows: The descriptions, shape ``[B, P]``.
        ridge: Penalty of each standardised weight, shape ``[P]``.
    """

    basis: Tensor
    rows: Tensor
    ridge: Tensor


class Tried(NamedTuple):
    """A trial, and what was fitted in it: a basis ``[R, D]`` and weights ``[C + 1, P]``."""

    trial: EvidenceTrial
    basis: Tensor
    weights: Tensor


@dataclass(frozen=True)
class Fitting:
    """What all candidates are fitted to, and scored on: the same subgraphs, classes and folds.

    Attributes:
        inputs: The instances, with what the model says of them.
        subgraphs: ``B`` subgraphs of all instances.
        fold: The fold of each subgraph, from 0, shape ``[B]``.
    """

    inputs: TaskInputs
    subgraphs: Subgraphs
    fold: Tensor
    _effects: dict[tuple[int, ...], Effect | None] = field(default_factory=dict)

    @property
    def label(self) -> Tensor | None:
        """Class of each instance, shape ``[I]``; ``None`` for values."""
        return self.inputs.target.label

    @property
    def several(self) -> bool:
        """Whether instances of several classes are explained."""
        return self.label is not None and int(self.label.min()) < int(self.label.max())

    @property
    def _classes(self) -> int:
        return 0 if self.label is None else self.inputs.target.prediction.size(1)

    def weights(self, description: Description, found: Measurements, held_back: Restraint) -> Tensor:
        """Fits what was measured; see :class:`~gflowexplainer.rewards.least_squares.LeastSquares`."""
        rows, instance = description.rows[found.rows], self.subgraphs.instance[found.rows]
        fitted = LeastSquares(rows, found.value, instance, self.label, description.ridge)
        return fitted.weights(self._classes, held_back)

    def held_out(self, description: Description, found: Measurements, held_back: Sequence[Restraint]) -> list[float]:
        """Scores such fits where they were not fitted; see :func:`held_out`."""
        rows, instance, fold = (of[found.rows] for of in (description.rows, self.subgraphs.instance, self.fold))
        return held_out(rows, found.value, instance, self.label, self._classes, description.ridge, held_back, fold)

    def rating(self, description: Description, weights: Tensor) -> Tensor:
        """Returns the evidence per node of the subgraphs by weights ``[C + 1, P]``, shape ``[B]``."""
        own = weights[-1 if self.label is None else self.label[self.subgraphs.instance]]
        return (description.rows * own).sum(dim=1) / self.subgraphs.size

    def effect(self, rating: Tensor) -> Effect | None:
        """Asks the model what the subgraphs do whose ``rating`` ``[B]`` is best; ``None`` of values.

        ``None`` too where the model cannot be asked about so little, as one with a norm over a single node.
        """
        if self.label is None:
            return None
        best = segment_argmax(rating, self.subgraphs.instance, len(self.inputs))
        name = tuple(best.tolist())
        if name not in self._effects:
            try:
                self._effects[name] = effect_of(self.inputs, self.subgraphs[best])
            except ModelError:
                self._effects[name] = None
        return self._effects[name]

    def attempts(
        self,
        candidates: Candidates,
        kind: EvidenceType,
        description: Description,
        found: Measurements,
        *,
        least: float = -math.inf,
        by_gradients: bool = False,
        **measured: Any,
    ) -> Iterator[Tried]:
        """Fits one kind of evidence to what was measured, with one set of weights and, where it may, by class.

        What explains no more than ``least`` is not worth asking the model about.
        """
        shared = kind.is_shared
        # Weights of gradients that are held back more rate best what does less to the model.
        held_back = [Restraint(caution=factor) for factor in (CAUTION[:1] if by_gradients else CAUTION)]
        # What the model loses without a node means the same in every class.
        for by_class in (False, True) if self.several and shared else (False,):
            told = self.held_out(description, found, held_back)
            place = told.index(max(told)) if by_class else _worth(told)
            explained, best = told[place], held_back[place]
            if self.label is not None:
                # By class, penalties are those that were best for all.
                held_back = [Restraint(pooling, best.caution) for pooling in candidates.poolings(self.label)]
            weights = self.weights(description, found, best)
            effect = self.effect(self.rating(description, weights)) if shared and explained > least else None
            yield Tried(
                EvidenceTrial(
                    kind,
                    by_class=by_class,
                    by_gradients=by_gradients,
                    explained=explained,
                    reproducible=found.reproducible,
                    effect=None if effect is None else effect.size,
                    incomplete=None if effect is None else effect.incomplete,
                    **measured,
                ),
                description.basis,
                weights,
            )


def learn_consensus(
    inputs: TaskInputs,
    subgraphs: Subgraphs,
    candidates: Candidates,
    measuring: Measuring,
    lost: NodeLosses | None = None,
) -> Consensus:
    """Measures how strongly subgraphs speak for their predictions in context, and fits the best candidate to it.

    Args:
        inputs: The instances, with what the model says of them.
        subgraphs: ``B`` subgraphs to measure, of all instances.
        candidates: What to choose from.
        measuring: What measures them.
        lost: What the model loses without nodes of these instances, as far as it was asked already.
    """
    seed = measuring.seed
    names = find_names_of(inputs)
    kinds = candidates.kinds(inputs, names)
    lost = NodeLosses(inputs) if lost is None else lost
    members = _members(inputs, subgraphs)
    gradients = GradientShare()
    own = None if all(kind.is_shared for kind in kinds) else lost.at(members)
    if own is not None and candidates.gradients and inputs.target.label is None:
        found = measuring.measure(subgraphs, min(candidates.keep_probabilities), candidates.removals[0])
        gradients = find_gradient_share(inputs, subgraphs, found, own, seed)
        own = lost.evidence(members, followed=True, gradients=gradients)
    described = dict[EvidenceType, Description]()
    caution = max(1.0, candidates.enough / len(subgraphs))
    for kind in kinds:
        raw = raw_evidence(inputs, kind, own, names)
        basis = basis_of(_without_rare_classes(inputs, kind, raw))
        evidence = Evidence.of(inputs.instances, raw, basis)
        described[kind] = Description(basis, evidence.describe(subgraphs), ridge_of(evidence) * caution)
    side = _sides(inputs, candidates.folds, seed)
    fitting, tried = Fitting(inputs, subgraphs, _folds(subgraphs, side, seed)), list[Tried]()
    for keep, removal in product(candidates.keep_probabilities, candidates.removals):
        found = measuring.measure(subgraphs, keep, removal)
        told, measured = -math.inf, dict[str, Any](keep_probability=keep, removal=removal)
        for kind, description in described.items():
            fitted = list(fitting.attempts(candidates, kind, description, found, least=told, **measured))
            told = max(told, *(one.trial.explained for one in fitted))
            tried += fitted
    classes = inputs.target.label is not None
    by_gradients = measure_gradients(inputs, subgraphs, seed) if candidates.gradients and classes else None
    if by_gradients is not None and EvidenceType.shared in described:
        kind, whole = EvidenceType.shared, dict[str, Any](keep_probability=1.0, removal=Removal.induced.value)
        tried += fitting.attempts(candidates, kind, described[kind], by_gradients, **whole, by_gradients=True)
    trials = [one.trial for one in tried]
    best = choose(trials, values=not classes)
    _, basis, weight = tried[trials.index(best)]
    beside = weight_beside(trials, best, inputs.instances.level)
    cohesion = 0.0
    if best.evidence.is_shared:
        cohesion = find_cohesion(fitting, fitting.rating(described[best.evidence], weight))
    consensus = Consensus(basis, weight, best, tuple(trials), beside=beside, cohesion=cohesion, names=names)
    if not consensus.needs_own:
        return consensus
    own = lost.evidence(members, followed=consensus.uses_own, gradients=gradients)
    return _reading_own(replace(consensus, gradients=gradients), inputs, own, members, side)


def _reading_own(consensus: Consensus, inputs: TaskInputs, own: Tensor, known: Tensor, side: Tensor) -> Consensus:
    """Adds what own evidence ``[n, 1]`` is read by: what is usual of nodes of a kind, and what of the strongest."""
    likeness = find_likeness(inputs, own, known, consensus.names, side)
    beside = consensus.beside * (PLAINLY if likeness.counts else 1.0)
    own = likeness.bring_near(inputs, own, consensus.names) * known[:, None]
    strongest = float(_strongest_losses(inputs, own).median())
    return replace(consensus, likeness=likeness, beside=beside, strongest_loss=strongest)


def find_cohesion(fitting: Fitting, rating: Tensor) -> float:
    """Returns what it counts, beside shared evidence, that a subgraph holds together; 0 where only evidence counts.

    Only of explained nodes, where all edges are alike; the model is asked whether that does as much to it.

    Args:
        fitting: What the evidence was fitted to.
        rating: The evidence per node of its subgraphs, shape ``[B]``.
    """
    instances, subgraphs = fitting.inputs.instances, fitting.subgraphs
    if instances.level == "graph" or instances.other_end is not None or num_relations(instances):
        return 0.0
    best = fitting.effect(rating)
    if best is None or not is_lacking(best):
        return 0.0
    strongest = segment_max(rating, subgraphs.instance, len(instances))
    counted = COHESION * float(strongest.median())
    together = fitting.effect(rating + counted * cohesion_of(instances, subgraphs) / subgraphs.size)
    return counted if counted > 0 and together is not None and is_a_place(together, best) else 0.0


def _worth(told: Sequence[float]) -> int:
    """Returns the place of what explains most, where what comes later has to explain more to be taken."""
    best = 0
    for place, explained in enumerate(told):
        best = place if explained > told[best] + WORTH else best
    return best


def _without_rare_classes(inputs: TaskInputs, kind: EvidenceType, raw: Tensor) -> Tensor:
    """Blanks the probability of the explained class where nearly all predictions are of one class."""
    label = inputs.target.label
    if label is None or kind == EvidenceType.own or not has_own_class(inputs):
        return raw
    others = label.numel() - int(torch.bincount(label).max())
    if others >= max(FEW, RARE * label.numel()):
        return raw
    blank = raw.clone()
    # Own evidence stands behind the shared one.
    blank[:, -1 if kind.is_shared else -2] = 0
    return blank


def _members(inputs: TaskInputs, subgraphs: Subgraphs) -> Tensor:
    """Marks the nodes that stand in any of the subgraphs, shape ``[n]``."""
    inside = torch.zeros(inputs.instances.num_nodes, dtype=torch.bool, device=subgraphs.members.device)
    inside[subgraphs.members[subgraphs.filled]] = True
    return inside


def _strongest_losses(inputs: TaskInputs, own: Tensor) -> Tensor:
    """Returns what the model loses without the node that it needs most, beside the explained one, shape ``[I]``."""
    instances, value = inputs.instances, own[:, 0].double()
    value = value.abs() if inputs.target.label is None else value.clamp(min=0)
    value[instances.roots] = 0
    return segment_max(value, instances.owner, len(instances), empty=0.0)


def _sides(inputs: TaskInputs, number: int, seed: int) -> Tensor:
    """Puts instances into so many folds alike, shape ``[I]``."""
    order = torch.argsort(uniform(seed, inputs.instances.own_key, _FOLD))
    side = torch.empty_like(order)
    side[order] = torch.arange(len(order), device=order.device) % number
    return side


def _folds(subgraphs: Subgraphs, side: Tensor, seed: int) -> Tensor:
    """Returns the fold of each subgraph: that of its instance, or of one instance alone one of two, shape ``[B]``."""
    if side.numel() > 1:
        return side[subgraphs.instance]
    every = torch.arange(len(subgraphs), device=subgraphs.instance.device)
    return (uniform(seed, every, _FOLD) < 0.5).long()
