"""Which evidence is believed, of all that was tried: a rule that sees no truth.

An instance's own evidence (what the model loses without each single node) nearly always predicts the model better than
evidence that is shared by all instances, also where it is accidental: it was measured there. So more is asked of it:
near the whole graph it has to explain nearly all that can be reproduced, which is how far two independent halves of the
contexts agree. Then the model adds up what single nodes do.

Where single losses add up to a value, they are its explanation, unless shared evidence says nearly the same and is
simpler. Classes are no sums: where one place stands in for another, no single loss shows either. And where a class
rests on several places at once, what shared evidence samples is one of them, while single losses show all. So the
distribution of a class follows shared evidence, unless it says nothing, and does not show what holds the class and is
needed either, or says less than half of what single losses say of small contexts too. Masks count single losses beside
it, by how nearly they explain all that can be reproduced, or by how far what shared evidence rates best is needed and
not enough: then nothing stands in for it, and single losses show what belongs to it elsewhere.

What predicts the model on random subgraphs is one thing, what it would show another. Of several kinds of shared
evidence, one is not taken that rates best what does far less to the model than what others rate best. And what was
fitted to gradients is taken only if what it rates best does something to the class, and far more than all that contexts
have shown; or no less, enough by itself, where it describes gradients far better than anything describes contexts. What
contexts have shown to be needed, though it is not enough, is not given up for something that holds a class by itself.

Evidence counts by the node, so around an explained one the few that say most stand alone, and lack others of their
place that the model hardly tells from the rest. Where much is lacking, a place that holds together is preferred: a
node all of whose edges stay inside counts twice what a node of the best subgraphs says, if such places do about as much
to the model and are needed. Where others would hold the class too, as in citation graphs, there is no place to show.
"""

from __future__ import annotations

from collections.abc import Sequence

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.best_rated import Effect
from gflowexplainer.rewards.evidence_trial import EvidenceTrial

BELIEVED = 0.87
"""Share of what can be reproduced that own evidence must explain to be believed."""
ENOUGH = 0.83
"""Share of what own evidence explains that shared evidence must explain to be preferred all the same."""
DOUBTED, TRUSTED = 0.8, 0.9
"""Shares of what can be reproduced from which on own evidence counts a little, and fully, in masks of classes."""
LITTLE, MUCH = 0.25, 0.75
"""How far the best subgraphs of graphs have to be needed and not enough for it to count a little, and fully."""
BESIDE = {"node": 1.0, "graph": 2.0}
"""What fully trusted own evidence counts in masks, where the distribution counts 1; graphs have several places."""
ALONE = 4.0
"""What it counts where the distribution follows it too, and only orders what it does not tell apart."""
HALF = 0.5
"""Share of own evidence that shared evidence must explain to be followed by classes whose own evidence adds up in the
smallest contexts too."""
SAID = 2 / 3
"""Share of what can be reproduced that shared evidence must explain to have said enough."""
HELD = 0.5
"""What the best subgraph must do to a class, hold it or be needed for it, for single losses of nodes to count, and for
what was fitted to gradients to be taken."""
SILENT = 0.1
"""Shared evidence that explains less than this says nothing about the model."""
CLEAR = 0.3
"""What weights of each class must explain to be taken where one set of weights for all says nothing."""
SMALLER, APART = 0.05, 0.1
"""How much more of the variance smaller contexts, and weights of each class or of gradients, must explain to be
taken."""
WEAKER = 0.1
"""How much less the subgraphs that evidence rates best may do than those that other evidence rates best."""
LACKING = 0.3
"""By how much less probable a class has to be with only the best subgraphs for them to lack much."""
COHESION = 2.0
"""What a node all of whose edges stay inside counts where subgraphs should hold together, as a multiple of what a node
of the best says."""
NEEDED = 1 / 3
"""By how much less probable it has to be without those, for nothing else to stand in for them."""


def choose(trials: Sequence[EvidenceTrial], *, values: bool = False) -> EvidenceTrial:
    """Picks the trial that explains most, among those whose evidence is believed.

    Args:
        trials: Everything that was tried.
        values: Whether the model predicts values, to which nodes may add up, and not classes.
    """
    told = [trial for trial in trials if not trial.by_gradients]
    chosen = _choose(told, values)
    shared = [t for t in told if t.effect is not None]
    if not shared or not chosen.evidence.is_shared:
        return chosen
    most, clear = max(t.effect or 0.0 for t in shared), max(map(_clarity, shared))
    possible, complete = max(map(_possible, shared)), all(map(_is_enough, shared))
    better = [
        t
        for t in trials
        if t.by_gradients
        and t.effect is not None
        and t.effect >= HELD
        and (
            t.effect > possible + WEAKER
            or (complete and t.effect >= most and _is_enough(t) and _clarity(t) >= clear + APART)
        )
    ]
    return max(better, key=lambda trial: trial.effect or 0.0, default=chosen)


def _possible(trial: EvidenceTrial) -> float:
    """Returns what the subgraphs that evidence rates best would do, as far as they are needed, if they were enough."""
    return (trial.effect or 0.0) + (trial.incomplete or 0.0) / 2


def _clarity(trial: EvidenceTrial) -> float:
    """Returns the share of what can be reproduced that a trial explains."""
    return trial.explained / trial.reproducible if trial.reproducible > 0 else 0.0


def _is_enough(trial: EvidenceTrial) -> bool:
    """Says whether the subgraphs that evidence rates best hold a class by themselves, as far as they are needed."""
    return (trial.incomplete or 0.0) < LITTLE


def _choose(trials: Sequence[EvidenceTrial], values: bool) -> EvidenceTrial:
    """Picks among what was measured in contexts."""
    nearest = max(trial.keep_probability for trial in trials)
    own = [t for t in trials if not t.evidence.is_shared and t.keep_probability == nearest]
    shared = [t for t in trials if t.evidence.is_shared]
    if not own:
        return _plainest(shared)
    best = max(own, key=_explained)
    if not shared:
        return best
    beside = max((t for t in shared if t.keep_probability == nearest), key=_explained)
    adds_up = best.explained >= BELIEVED * best.reproducible > 0
    adds_up = values and adds_up and SILENT <= beside.explained < ENOUGH * best.explained
    most, plainest = max(shared, key=_explained), _plainest(shared)
    if adds_up or (plainest.explained < min(SILENT, best.explained) and not _does_much(plainest)):
        return best
    smallest = min(trial.keep_probability for trial in trials)
    alone = [t for t in trials if (t.evidence, t.keep_probability) == (EvidenceType.own, smallest)]
    best = max(alone, key=_explained, default=most)
    adds_up = best.explained >= BELIEVED * best.reproducible > 0
    return best if adds_up and not values and most.explained < HALF * best.explained else plainest


def weight_beside(trials: Sequence[EvidenceTrial], chosen: EvidenceTrial, level: str) -> float:
    """Says what an instance's own evidence counts in masks, where the distribution counts 1.

    Explanations of a node are one connected place, which shared evidence that says nearly the same has found already.
    And where even the best such place neither holds the class nor is needed for it, many nodes do a little each, and
    what single ones do is no explanation. Where gradients were needed, removing nodes shows little.
    """
    if chosen.by_gradients:
        return 0.0
    trials = [trial for trial in trials if not trial.by_gradients]
    if not chosen.evidence.is_shared:
        return ALONE
    nearest = max(trial.keep_probability for trial in trials)
    near = [t for t in trials if t.keep_probability == nearest]
    own = max((t for t in near if t.evidence == EvidenceType.own), key=_explained, default=None)
    if own is None or own.reproducible <= 0:
        return 0.0
    beside = max(t.explained for t in near if t.evidence.is_shared)
    if level != "graph" and (beside >= ENOUGH * own.explained or _does_little(chosen)):
        return 0.0
    trust = (own.explained / own.reproducible - DOUBTED) / (TRUSTED - DOUBTED)
    if level == "graph":
        trust = max(trust, (max(t.incomplete or 0.0 for t in trials) - LITTLE) / (MUCH - LITTLE))
    return BESIDE["graph" if level == "graph" else "node"] * min(max(trust, 0.0), 1.0)


def is_lacking(best: Effect) -> bool:
    """Says whether subgraphs with most evidence per node lack so much that others may be better."""
    return best.lacking > LACKING


def is_a_place(together: Effect, best: Effect) -> bool:
    """Says whether subgraphs that hold together do as much as those with most evidence per node, and are needed."""
    return together.size >= best.size - WEAKER and together.needed > NEEDED


def says_little(chosen: EvidenceTrial) -> bool:
    """Says whether the shared evidence that was taken leaves much of what can be reproduced unexplained."""
    in_contexts = chosen.evidence.is_shared and not chosen.by_gradients
    return in_contexts and chosen.explained < SAID * chosen.reproducible


def _does_little(trial: EvidenceTrial) -> bool:
    """Says whether the subgraphs that evidence rates best neither hold a class nor are needed for it."""
    return trial.effect is not None and max(trial.effect, trial.incomplete or 0.0) < HELD


def _does_much(trial: EvidenceTrial) -> bool:
    """Says whether evidence describes other instances, if little, and rates best what holds a class and is needed."""
    return trial.explained > 0 and (trial.effect or 0.0) > HELD + WEAKER


def _plainest(trials: Sequence[EvidenceTrial]) -> EvidenceTrial:
    """Picks the trial that explains most, but what is less plain only where it explains more.

    Plain are contexts near the whole graph, which the model was trained for, and one set of weights for all classes: a
    default class is preserved by nothing in particular, and only the other classes show what the model looks at. So
    where one set of weights says nothing, weights of each class are trusted only if what they say is clear. Plain is
    too what the model predicts at nodes, which knows of their surroundings, without their features. And what predicts
    the model well on random subgraphs, but rates those best that do far less to it than others, is not taken.
    """
    most = max((t.effect for t in trials if t.effect is not None), default=0.0)
    trials = [t for t in trials if t.effect is None or t.effect >= most - WEAKER]
    by_features = [t for t in trials if t.evidence == EvidenceType.features]
    plain = [t for t in trials if t.evidence != EvidenceType.features]
    if not by_features or not plain:
        return _by_class_or_not(trials)
    found, other = _by_class_or_not(plain), _by_class_or_not(by_features)
    return other if other.explained > found.explained + SMALLER else found


def _by_class_or_not(trials: Sequence[EvidenceTrial]) -> EvidenceTrial:
    """Picks among trials of one kind of evidence; see :func:`_plainest`."""

    def best(by_class: bool) -> EvidenceTrial | None:
        found: EvidenceTrial | None = None
        for keep in sorted({trial.keep_probability for trial in trials}, reverse=True):
            here = [t for t in trials if (t.by_class, t.keep_probability) == (by_class, keep)]
            most = max(here, key=_explained, default=None)
            if most is not None and (found is None or most.explained > found.explained + SMALLER):
                found = most
        return found

    pooled, apart = best(False), best(True)
    if pooled is None or apart is None:
        return max((t for t in (pooled, apart) if t is not None), key=_explained)
    if apart.explained <= pooled.explained + APART:
        return pooled
    return apart if pooled.explained >= SILENT or apart.explained >= CLEAR else pooled


def _explained(trial: EvidenceTrial) -> float:
    return trial.explained
