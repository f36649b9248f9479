"""Learns a consensus, and finds out by which evidence: what predicts the model best where it was not fitted.

Candidates differ in what nodes are told apart by, in how much of the rest the contexts keep (near the whole graph they
show what is needed, smaller ones what suffices), in what "without the rest" means, and in whether classes have weights
of their own. Each is fitted to half of the instances and scored on the other half, both ways: the share of the variance
within instances that it explains.

An instance's own evidence (what the model loses without each single node) nearly always predicts the model better than
evidence that is shared by all instances, also where it is accidental: it was measured there. So more is asked of it:
near the whole graph it has to explain nearly all that can be reproduced, which is how far two independent halves of the
contexts agree. Then the model adds up what single nodes do.

Where single losses add up to a value, they are its explanation, unless shared evidence says nearly the same and is
simpler. Classes are no sums: where one place stands in for another, no single loss shows either. And where a class
rests on several places at once, what shared evidence samples is one of them, while single losses show all. So the
distribution of a class follows shared evidence, unless it says nothing, or less than half of what single losses say of
small contexts too, and masks count single losses beside it, by how nearly they explain all that can be reproduced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.ops.segments import segment_max
from gflowexplainer.rewards.best_rated import effect_of_best
from gflowexplainer.rewards.consensus import Consensus, EvidenceTrial, fit_weights, ridge_of, shares_of, within
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.evidence import Evidence, basis_of, has_own_class, has_shared, raw_evidence
from gflowexplainer.rewards.occlusion import NodeLosses

KEPT = (0.5, 0.8)
"""Shares of the nodes that contexts keep, where it is not given."""
BELIEVED = 0.87
"""Share of what can be reproduced that own evidence must explain to be believed."""
ENOUGH = 0.83
"""Share of what own evidence explains that shared evidence must explain to be preferred all the same."""
DOUBTED, TRUSTED = 0.8, 0.9
"""Shares of what can be reproduced from which on own evidence counts a little, and fully, in masks of classes."""
BESIDE = {"node": 1.0, "graph": 2.0}
"""What fully trusted own evidence counts in masks, where the distribution counts 1; graphs have several places."""
ALONE = 4.0
"""What it counts where the distribution follows it too, and only orders what it does not tell apart."""
HALF = 0.5
"""Share of own evidence that shared evidence must explain to be followed by classes whose own evidence adds up in the
smallest contexts too."""
SILENT = 0.1
"""Shared evidence that explains less than this says nothing about the model."""
FEW, RARE = 3, 0.1
"""Predictions, and their share, that have to be of other classes than the most frequent one for classes to teach each
other; fewer may be nothing but the model's mistakes."""
LOOSER = (1.0, 0.1, 0.01)
"""Shares of the pooling of classes that are tried: a few instances of each may show that the classes differ."""
MOSTLY = 0.75
"""Share that a class's own weights have in its description where pooling is weakest: what holds a default class is
nothing in particular, and only the other classes show what the model looks at."""
CLEAR = 0.3
"""What weights of each class must explain to be taken where one set of weights for all says nothing."""
SMALLER, APART = 0.05, 0.1
"""How much more of the variance smaller contexts, and weights of each class, must explain to be taken."""
WEAKER = 0.1
"""How much less the subgraphs that evidence rates best may do than those that other evidence rates best."""
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
    """

    evidence: EvidenceType = EvidenceType.auto
    keep_probabilities: Sequence[float] = KEPT
    removals: Sequence[str] = ("induced",)
    pooling: float = 30.0

    def kinds(self, inputs: TaskInputs) -> tuple[EvidenceType, ...]:
        """Returns the kinds of evidence that instances allow; links have but one."""
        if inputs.instances.other_end is not None:
            return (EvidenceType.shared,)
        if self.evidence != EvidenceType.auto:
            return (self.evidence,)
        if not has_shared(inputs):
            return (EvidenceType.own,)
        return (EvidenceType.shared, EvidenceType.both, EvidenceType.own)

    def poolings(self, label: Tensor) -> list[float]:
        """Returns the strengths of pooling that are tried for instances of some classes ``[I]``, strongest first."""
        mostly = label.numel() / torch.unique(label).numel() * (1 / MOSTLY - 1)
        return sorted({max(self.pooling * share, min(self.pooling, mostly)) for share in LOOSER}, reverse=True)


@dataclass(frozen=True)
class Measurements:
    """How strongly ``B`` subgraphs spoke for their predictions, in contexts of one kind.

    Attributes:
        value: Mean over all contexts, shape ``[B]``.
        reproducible: Share of the variance within instances that another draw of contexts would show again.
    """

    value: Tensor
    reproducible: float


def learn_consensus(
    inputs: TaskInputs,
    subgraphs: Subgraphs,
    candidates: Candidates,
    *,
    num_contexts: int,
    seed: int,
    lost: NodeLosses | None = None,
) -> Consensus:
    """Measures how strongly subgraphs speak for their predictions in context, and fits the best candidate to it.

    Args:
        inputs: The instances, with what the model says of them.
        subgraphs: ``B`` subgraphs to measure, of all instances.
        candidates: What to choose from.
        num_contexts: Contexts of each instance.
        seed: Names the contexts.
        lost: What the model loses without nodes of these instances, as far as it was asked already.
    """
    kinds = candidates.kinds(inputs)
    lost = NodeLosses(inputs) if lost is None else lost
    own = None if set(kinds) == {EvidenceType.shared} else lost.at(_members(inputs, subgraphs))
    described = {}
    for kind in kinds:
        raw = raw_evidence(inputs, kind, own)
        basis = basis_of(_without_rare_classes(inputs, kind, raw))
        evidence = Evidence.of(inputs.instances, raw, basis)
        described[kind] = (basis, evidence.describe(subgraphs), ridge_of(evidence))
    label, instance = inputs.target.label, subgraphs.instance
    classes = 0 if label is None else inputs.target.prediction.size(1)
    several = label is not None and int(label.min()) < int(label.max())
    fold = _folds(inputs, subgraphs, seed)
    trials, measured, pooling_of = [], {}, {}
    for keep in candidates.keep_probabilities:
        for removal in candidates.removals:
            found = measure(inputs, subgraphs, keep, removal, num_contexts, seed)
            measured[keep, removal] = found.value
            for kind, (_, description, ridge) in described.items():
                # What the model loses without a node means the same in every class.
                for by_class in (False, True) if several and kind == EvidenceType.shared else (False,):
                    strengths = candidates.poolings(label) if by_class and label is not None else [math.inf]
                    told = [
                        held_out(description, found.value, instance, label, classes, ridge, pooling, fold)
                        for pooling in strengths
                    ]
                    pooling, effect = strengths[told.index(max(told))], 0.0
                    if kind == EvidenceType.shared and label is not None:
                        weight = fit_weights(description, found.value, instance, label, classes, ridge, pooling)
                        rating = (description * weight[label[instance]]).sum(dim=1) / subgraphs.size
                        effect = effect_of_best(inputs, subgraphs, rating)
                    trials.append(EvidenceTrial(kind, keep, removal, by_class, max(told), found.reproducible, effect))
                    pooling_of[trials[-1]] = pooling
    best = choose(trials, values=label is None)
    beside = weight_beside(trials, best, inputs.instances.level)
    basis, description, ridge = described[best.evidence]
    wanted = measured[best.keep_probability, best.removal]
    weight = fit_weights(description, wanted, instance, label, classes, ridge, pooling_of[best])
    consensus = Consensus(basis, weight, best, tuple(trials), beside=beside)
    if not consensus.needs_own:
        return consensus
    return replace(consensus, strongest_loss=float(_strongest_losses(inputs, lost.at()).median()))


def choose(trials: Sequence[EvidenceTrial], *, values: bool = False) -> EvidenceTrial:
    """Picks the trial that explains most, among those whose evidence is believed.

    Args:
        trials: Everything that was tried.
        values: Whether the model predicts values, to which nodes may add up, and not classes.
    """
    nearest = max(trial.keep_probability for trial in trials)
    own = [t for t in trials if t.evidence != EvidenceType.shared and t.keep_probability == nearest]
    shared = [t for t in trials if t.evidence == EvidenceType.shared]
    if not own:
        return _plainest(shared)
    best = max(own, key=_explained)
    if not shared:
        return best
    beside = max((t for t in shared if t.keep_probability == nearest), key=_explained)
    adds_up = best.explained >= BELIEVED * best.reproducible > 0
    adds_up = values and adds_up and SILENT <= beside.explained < ENOUGH * best.explained
    most, plainest = max(shared, key=_explained), _plainest(shared)
    if adds_up or plainest.explained < min(SILENT, best.explained):
        return best
    smallest = min(trial.keep_probability for trial in trials)
    alone = [t for t in trials if (t.evidence, t.keep_probability) == (EvidenceType.own, smallest)]
    best = max(alone, key=_explained, default=most)
    adds_up = best.explained >= BELIEVED * best.reproducible > 0
    return best if adds_up and not values and most.explained < HALF * best.explained else plainest


def weight_beside(trials: Sequence[EvidenceTrial], chosen: EvidenceTrial, level: str) -> float:
    """Says what an instance's own evidence counts in masks, where the distribution counts 1.

    Explanations of a node are one connected place, which shared evidence that says nearly the same has found already.
    """
    if chosen.evidence != EvidenceType.shared:
        return ALONE
    nearest = max(trial.keep_probability for trial in trials)
    near = [t for t in trials if t.keep_probability == nearest]
    own = max((t for t in near if t.evidence == EvidenceType.own), key=_explained, default=None)
    if own is None or own.reproducible <= 0:
        return 0.0
    beside = max(t.explained for t in near if t.evidence == EvidenceType.shared)
    if level != "graph" and beside >= ENOUGH * own.explained:
        return 0.0
    trust = (own.explained / own.reproducible - DOUBTED) / (TRUSTED - DOUBTED)
    return BESIDE["graph" if level == "graph" else "node"] * min(max(trust, 0.0), 1.0)


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
    blank[:, -1 if kind == EvidenceType.shared else -2] = 0
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


def _plainest(trials: Sequence[EvidenceTrial]) -> EvidenceTrial:
    """Picks the trial that explains most, but what is less plain only where it explains more.

    Plain are contexts near the whole graph, which the model was trained for, and one set of weights for all classes: a
    default class is preserved by nothing in particular, and only the other classes show what the model looks at. So
    where one set of weights says nothing, weights of each class are trusted only if what they say is clear. And what
    predicts the model well on random subgraphs, but rates those best that do far less to it than others, is not taken.
    """

    def best(by_class: bool) -> EvidenceTrial | None:
        found: EvidenceTrial | None = None
        for keep in sorted({trial.keep_probability for trial in trials}, reverse=True):
            here = [t for t in trials if (t.by_class, t.keep_probability) == (by_class, keep)]
            most = max(here, key=_explained, default=None)
            if most is not None and (found is None or most.explained > found.explained + SMALLER):
                found = most
        return found

    most = max(trial.effect for trial in trials)
    trials = [trial for trial in trials if trial.effect >= most - WEAKER]
    pooled, apart = best(False), best(True)
    if pooled is None or apart is None:
        return max((t for t in (pooled, apart) if t is not None), key=_explained)
    if apart.explained <= pooled.explained + APART:
        return pooled
    return apart if pooled.explained >= SILENT or apart.explained >= CLEAR else pooled


def _explained(trial: EvidenceTrial) -> float:
    return trial.explained


def measure(
    inputs: TaskInputs, subgraphs: Subgraphs, keep_probability: float, removal: str, num_contexts: int, seed: int
) -> Measurements:
    """Measures subgraphs in two independent halves of the contexts."""
    halves = [
        ContextReward(
            inputs.predictor,
            inputs.instances,
            target=inputs.target,
            removal=removal,
            num_contexts=max(1, number),
            keep_probability=keep_probability,
            average="strength",
            seed=int(combine(seed, half)),
        ).log_score(subgraphs)
        for half, number in enumerate((num_contexts - num_contexts // 2, num_contexts // 2))
    ]
    share = shares_of(subgraphs.instance)
    one, other = (within(half, subgraphs.instance, share) for half in halves)
    scale = ((share * one.square()).sum() * (share * other.square()).sum()).sqrt()
    agreement = max(0.0, float((share * one * other).sum() / scale)) if scale > 0 else 0.0
    # Of the mean of both halves, by the formula of Spearman and Brown.
    return Measurements((halves[0] + halves[1]) / 2, 2 * agreement / (1 + agreement))


def held_out(
    description: Tensor,
    measured: Tensor,
    instance: Tensor,
    label: Tensor | None,
    num_classes: int,
    ridge: Tensor,
    pooling: float,
    fold: Tensor,
) -> float:
    """Returns the share of variance within instances that weights explain which were fitted to the other fold.

    Args:
        description: Descriptions of ``B`` subgraphs, shape ``[B, P]``.
        measured: What was measured of each, shape ``[B]``.
        instance: Instance of each, shape ``[B]``.
        label: Class of each instance, shape ``[I]``; ``None`` for regression.
        num_classes: Number of classes; 0 for regression.
        ridge: Penalty of each standardised weight, shape ``[P]``.
        pooling: See :func:`~gflowexplainer.rewards.consensus.fit_weights`.
        fold: The fold, 0 or 1, of each subgraph, shape ``[B]``.
    """
    left = total = 0.0
    for part in (0, 1):
        seen, rest = torch.nonzero(fold != part).flatten(), torch.nonzero(fold == part).flatten()
        if not seen.numel() or not rest.numel():
            continue
        weight = fit_weights(description[seen], measured[seen], instance[seen], label, num_classes, ridge, pooling)
        own = weight[-1:] if label is None else weight[label[instance[rest]]]
        predicted = (description[rest].double() * own).sum(dim=1)
        share = shares_of(instance[rest])
        wanted, given = (within(values, instance[rest], share) for values in (measured[rest], predicted))
        left += float((share * (wanted - given).square()).sum())
        total += float((share * wanted.square()).sum())
    return 1 - left / total if total > 0 else 0.0


def _folds(inputs: TaskInputs, subgraphs: Subgraphs, seed: int) -> Tensor:
    """Puts half of the instances, or of one alone half of its subgraphs, into each of two folds, shape ``[B]``."""
    instances = inputs.instances
    if len(instances) > 1:
        order = torch.argsort(uniform(seed, instances.own_key, _FOLD))
        side = torch.empty_like(order)
        side[order] = torch.arange(len(order), device=order.device) % 2
        return side[subgraphs.instance]
    number = torch.arange(len(subgraphs), device=subgraphs.instance.device)
    return (uniform(seed, number, _FOLD) < 0.5).long()
