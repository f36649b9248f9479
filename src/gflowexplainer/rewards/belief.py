"""Which evidence is believed, of all that was tried: a rule that sees no truth.

An instance's own evidence (what the model loses without each single node) nearly always predicts the model better than
evidence that is shared by all instances, also where it is accidental: it was measured there. So more is demanded of it:
near the whole graph it has to explain nearly all that can be reproduced, which is how far two independent halves of the
contexts agree. Then the model adds up what single nodes do.

Where single losses add up to a value, they are its explanation, unless shared evidence says nearly the same and is
simpler. Classes are no sums: where one place stands in for another, no single loss shows either. And where a class
rests on several places at once, what shared evidence samples is one of them, while single losses show all. So the
distribution of a class follows shared evidence, unless it says nothing and does not show what holds the class and is
needed; or says less than half (around a node, where it does not show that, two thirds) of what single losses say of
small contexts, where these add up nearly everywhere; or, around a node, far less than these, if what it names does
little to the class.
What single losses count in masks beside it is another question (:mod:`~gflowexplainer.rewards.mask_weight`).

What predicts the model on random subgraphs is one thing, what it would show another. Of several kinds of shared
evidence, one is not taken that rates best what does far less to the model than what others rate best. And what was
fitted to gradients is taken only if what it rates best does something to the class, and far more than all that contexts
have shown; or no less, enough by itself, where it describes gradients far better than anything describes contexts. What
contexts have shown to be needed, though it is not enough, is not given up for something that holds a class by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.effect import HELD, LITTLE, WEAKER
from gflowexplainer.rewards.evidence_trial import EvidenceTrial

BELIEVED = 0.87
"""Share of what can be reproduced that own evidence must explain to be believed."""
NEARLY = 0.8
"""Share of it that is enough in the smallest contexts, where it is believed near the whole graph and a node is
explained."""
HALF = 0.5
"""Share of own evidence that adds up that shared evidence of a class must explain to be followed, whatever it shows."""
ENOUGH = 0.83
"""Share of what own evidence explains that shared evidence must explain to be preferred all the same."""
SAID = 2 / 3
"""Share of what can be reproduced that shared evidence must explain to have said enough; around nodes also of own
evidence that adds up, where it shows little. Masks of graphs count single losses anyway."""
MORE = 0.42
"""Share of what can be reproduced in small contexts that own evidence must explain beyond shared evidence to be
followed around a node, though it does not add up, where what shared evidence names does little to the class."""
SILENT = 0.1
"""Shared evidence that explains less than this says nothing about the model."""
CLEAR = 0.3
"""What weights of each class must explain to be taken where one set of weights for all says nothing."""
SMALLER, APART = 0.05, 0.1
"""How much more of the variance smaller contexts, and weights of each class or of gradients, must explain to be
taken."""


def choose(trials: Sequence[EvidenceTrial], *, values: bool = False, level: str = "node") -> EvidenceTrial:
    """Picks the trial that explains most, among those whose evidence is believed.

    Args:
        trials: Everything that was tried.
        values: Whether the model predicts values, to which nodes may add up, and not classes.
        level: What is explained: ``"graph"``, or one place around a node or link.
    """
    in_contexts = [trial for trial in trials if not trial.by_gradients]
    chosen = _choose_in_contexts(in_contexts, values, level)
    known = [trial for trial in in_contexts if trial.effect]
    if not known or not chosen.evidence.is_shared:
        return chosen
    better = [trial for trial in trials if trial.by_gradients and trial.effect and _shows_more(trial, known)]
    return max(better, key=lambda trial: trial.size, default=chosen)


def says_little(chosen: EvidenceTrial) -> bool:
    """Returns whether the shared evidence that was taken leaves much of what can be reproduced unexplained."""
    in_contexts = chosen.evidence.is_shared and not chosen.by_gradients
    return in_contexts and chosen.explained < SAID * chosen.reproducible


def most_explained(trials: Iterable[EvidenceTrial]) -> EvidenceTrial | None:
    """Returns the trial that explains most; ``None`` where there is none."""
    return max(trials, key=lambda trial: trial.explained, default=None)


def _shows_more(by_gradients: EvidenceTrial, in_contexts: Sequence[EvidenceTrial]) -> bool:
    """Returns whether gradients name what does more to the class than all that contexts have shown, or show it better.

    What contexts name counts by what it could do: as far as it is needed, half of what it lacks is added.
    """
    if by_gradients.size < HELD:
        return False
    if by_gradients.size > max(trial.size + trial.incomplete / 2 for trial in in_contexts) + WEAKER:
        return True
    return (
        by_gradients.size >= max(trial.size for trial in in_contexts)
        and by_gradients.clarity >= max(trial.clarity for trial in in_contexts) + APART
        and all(trial.incomplete < LITTLE for trial in (by_gradients, *in_contexts))
    )


def _choose_in_contexts(trials: Sequence[EvidenceTrial], values: bool, level: str) -> EvidenceTrial:
    """Picks among what was measured in contexts."""
    nearest, smallest = (pick(trial.keep_probability for trial in trials) for pick in (max, min))
    shared = [trial for trial in trials if trial.evidence.is_shared]
    own = most_explained(t for t in trials if not t.evidence.is_shared and t.keep_probability == nearest)
    if own is None or not shared:
        return own or _plainest(shared)
    plainest = _plainest(shared)
    shows_much = plainest.explained > 0 and plainest.does_much
    if plainest.explained < min(SILENT, own.explained) and not shows_much:
        return own
    if values:
        beside = most_explained(trial for trial in shared if trial.keep_probability == nearest)
        says_less = beside is not None and SILENT <= beside.explained < ENOUGH * own.explained
        return own if says_less and _adds_up(own) else plainest
    alone = [trial for trial in trials if trial.evidence == EvidenceType.own]
    near, far = (most_explained(t for t in alone if t.keep_probability == keep) for keep in (nearest, smallest))
    if near is None or far is None:
        return plainest
    told = max(trial.explained for trial in shared)
    if level != "graph" and plainest.does_little and far.explained - told > MORE * far.reproducible:
        return near
    less = HALF if shows_much or level == "graph" else SAID
    if told >= less * far.explained:
        return plainest
    nearly = level != "graph" and _adds_up(far, NEARLY) and _adds_up(near)
    return near if nearly or _adds_up(far) else plainest


def _adds_up(own: EvidenceTrial, least: float = BELIEVED) -> bool:
    """Returns whether what single nodes do explains nearly all that can be reproduced, ``least`` of it."""
    return own.explained >= least * own.reproducible > 0


def _plainest(trials: Sequence[EvidenceTrial]) -> EvidenceTrial:
    """Picks the trial that explains most, but what is less plain only where it explains more.

    Plain are contexts near the whole graph, which the model was trained for, and one set of weights for all classes: a
    default class is preserved by nothing in particular, and only the other classes show what the model looks at. So
    where one set of weights says nothing, weights of each class are trusted only if what they say is clear. Plain is
    too what the model predicts at nodes, which knows of their surroundings, without their features. And what predicts
    the model well on random subgraphs, but rates those best that do far less to it than others, is not taken.
    """
    most = max((trial.size for trial in trials if trial.effect), default=0.0)
    trials = [trial for trial in trials if trial.effect is None or trial.size >= most - WEAKER]
    by_features = [trial for trial in trials if trial.evidence == EvidenceType.features]
    plain = [trial for trial in trials if trial.evidence != EvidenceType.features]
    if not by_features or not plain:
        return _by_class_or_not(trials)
    found, other = _by_class_or_not(plain), _by_class_or_not(by_features)
    return other if other.explained > found.explained + SMALLER else found


def _by_class_or_not(trials: Sequence[EvidenceTrial]) -> EvidenceTrial:
    """Picks among trials of one kind of evidence; see :func:`_plainest`."""
    pooled = _nearest([trial for trial in trials if not trial.by_class])
    apart = _nearest([trial for trial in trials if trial.by_class])
    if pooled is None or apart is None:
        found = pooled or apart
        assert found is not None
        return found
    if apart.explained <= pooled.explained + APART:
        return pooled
    return apart if pooled.explained >= SILENT or apart.explained >= CLEAR else pooled


def _nearest(trials: Sequence[EvidenceTrial]) -> EvidenceTrial | None:
    """Picks the trial nearest to the whole graph, or of smaller contexts where these explain clearly more."""
    found: EvidenceTrial | None = None
    for keep in sorted({trial.keep_probability for trial in trials}, reverse=True):
        here = most_explained(trial for trial in trials if trial.keep_probability == keep)
        if here and (found is None or here.explained > found.explained + SMALLER):
            found = here
    return found
