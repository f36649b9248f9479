"""Learns a consensus, and finds out by which evidence: what predicts the model best where it was not fitted.

Candidates differ in what nodes are told apart by, in how much of the rest the contexts keep (near the whole graph they
show what is needed, smaller ones what suffices), in what "without the rest" means, and in whether classes have weights
of their own. Each is fitted to half of the instances and scored on the other half, both ways, or to more of few: the
share of the variance within instances that it explains. Which one is taken is decided in
:mod:`~gflowexplainer.rewards.belief`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType, Removal
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import segment_max
from gflowexplainer.rewards.belief import choose
from gflowexplainer.rewards.candidates import Candidates
from gflowexplainer.rewards.cohesion import find_cohesion
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.evidence import (
    Evidence,
    find_basis,
    find_categories_of,
    has_own_class,
    raw_evidence,
    ridge_of,
)
from gflowexplainer.rewards.fitting import Description, Fitting, Tried
from gflowexplainer.rewards.gradient_share import find_gradient_share
from gflowexplainer.rewards.gradients import GradientShare
from gflowexplainer.rewards.likeness import PLAINLY, find_likeness
from gflowexplainer.rewards.mask_weight import mask_weight
from gflowexplainer.rewards.measuring import Measuring, measure_gradients
from gflowexplainer.rewards.occlusion import GAINED_IN_MASKS, NodeLosses

FEW, RARE = 3, 0.1
"""Predictions, and their share, that have to be of other classes than the most frequent one for classes to teach each
other; fewer may be nothing but the model's mistakes."""
_FOLD = 2


def learn_consensus(
    inputs: TaskInputs,
    subgraphs: Subgraphs,
    candidates: Candidates,
    measuring: Measuring,
    lost: NodeLosses | None = None,
) -> Consensus:
    """Measures how strongly subgraphs speak for their predictions in context, and fits the best candidate to it.

    Args:
        inputs: The instances, with what the model predicts for them.
        subgraphs: ``B`` subgraphs to measure, of all instances.
        candidates: What to choose from.
        measuring: What measures them.
        lost: What the model loses without nodes of these instances, as far as it was asked already.
    """
    seed = measuring.seed
    names = find_categories_of(inputs)
    kinds = candidates.kinds(inputs, names)
    lost = NodeLosses(inputs) if lost is None else lost
    members = _members(inputs, subgraphs)
    gradients = GradientShare()
    own = None if all(kind.is_shared for kind in kinds) else lost.at(members)
    if own is not None and candidates.gradients and inputs.target.label is None:
        found = measuring.measure(subgraphs, min(candidates.keep_probabilities), candidates.removals[0])
        gradients = find_gradient_share(inputs, subgraphs, found, own, seed)
        own = lost.evidence(members, gradients=gradients)
    # One kind after the other, as wide features take memory.
    raw = ((kind, raw_evidence(inputs, kind, own, names)) for kind in kinds)
    caution = max(1.0, candidates.enough / len(subgraphs))
    described = _describe(inputs, subgraphs, raw, caution)
    side = _sides(inputs, candidates.folds, seed)
    fitting = Fitting(inputs, subgraphs, _folds(subgraphs, side, seed))
    tried = _try(fitting, candidates, measuring, described)
    trials = [one.trial for one in tried]
    best = choose(trials, values=inputs.target.label is None, level=inputs.instances.level)
    _, basis, weight = tried[trials.index(best)]
    beside = mask_weight(trials, best, inputs.instances.level)
    cohesion = 0.0
    if best.evidence.is_shared:
        cohesion = find_cohesion(fitting, fitting.rating(described[best.evidence], weight))
    consensus = Consensus(basis, weight, best, tuple(trials), beside=beside, cohesion=cohesion, names=names)
    if not consensus.needs_own:
        return consensus
    own = lost.evidence(members, gained=GAINED_IN_MASKS * consensus.uses_own, gradients=gradients)
    return _reading_own(replace(consensus, gradients=gradients), inputs, own, members, side)


def _describe(
    inputs: TaskInputs, subgraphs: Subgraphs, raw: Iterable[tuple[EvidenceType, Tensor]], caution: float
) -> dict[EvidenceType, Description]:
    """Describes subgraphs by each kind of raw evidence ``[n, R]``, with penalties so many times as large as usual."""
    described = {}
    for kind, columns in raw:
        basis = find_basis(inputs.instances, kind, _without_rare_classes(inputs, kind, columns))
        evidence = Evidence.of(inputs.instances, columns, basis, kind)
        described[kind] = Description(basis, evidence.describe(subgraphs), ridge_of(evidence) * caution)
    return described


def _try(
    fitting: Fitting, candidates: Candidates, measuring: Measuring, described: Mapping[EvidenceType, Description]
) -> list[Tried]:
    """Fits all candidates to what is measured in context, and shared evidence of classes to gradients."""
    inputs, subgraphs, tried = fitting.inputs, fitting.subgraphs, list[Tried]()
    rows = _of_usual_class(inputs, subgraphs)
    for keep, removal in product(candidates.keep_probabilities, candidates.removals):
        found = measuring.measure(subgraphs[rows], keep, removal)._replace(rows=rows)
        told, measured = -math.inf, dict[str, Any](keep_probability=keep, removal=removal)
        for kind, description in described.items():
            fitted = list(fitting.attempts(candidates, kind, description, found, least=told, **measured))
            told = max(told, *(one.trial.explained for one in fitted))
            tried += fitted
    if not candidates.gradients or inputs.target.label is None:
        return tried
    by_gradients = measure_gradients(inputs, subgraphs, measuring.seed)
    if by_gradients is not None and EvidenceType.shared in described:
        kind, whole = EvidenceType.shared, dict[str, Any](keep_probability=1.0, removal=Removal.induced.value)
        tried += fitting.attempts(candidates, kind, described[kind], by_gradients, **whole, by_gradients=True)
    return tried


def _reading_own(consensus: Consensus, inputs: TaskInputs, own: Tensor, known: Tensor, side: Tensor) -> Consensus:
    """Adds what own evidence ``[n, 1]`` is read by: what is usual of nodes of a kind, and what of the strongest."""
    likeness = find_likeness(inputs, own, known, consensus.names, side)
    beside = consensus.beside * (PLAINLY if likeness.counts else 1.0)
    own = likeness.shrink(inputs, own, consensus.names) * known[:, None]
    strongest = float(_strongest_losses(inputs, own).median())
    return replace(consensus, likeness=likeness, beside=beside, strongest_loss=strongest)


def _usual_class(inputs: TaskInputs) -> Tensor | None:
    """Marks the instances ``[I]`` of a class that over nine of ten are predicted to be of; ``None`` without one."""
    label = inputs.target.label
    if label is None or not has_own_class(inputs):
        return None
    usual = label == torch.bincount(label).argmax()
    return usual if 0 < int((~usual).sum()) < RARE * label.numel() else None


def _of_usual_class(inputs: TaskInputs, subgraphs: Subgraphs) -> Tensor | slice:
    """Returns the rows of the subgraphs that teach: a mistake or two would hide what all others have in common."""
    usual = _usual_class(inputs)
    return slice(None) if usual is None else torch.nonzero(usual[subgraphs.instance]).flatten()


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
