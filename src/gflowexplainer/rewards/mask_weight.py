"""What an instance's own evidence counts in masks, where the distribution over subgraphs counts 1.

Masks count single losses beside what the distribution follows by how nearly they explain all that can be reproduced,
or by how far what shared evidence rates best is needed and not enough: then nothing stands in for it, and single losses
show what belongs to it elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.belief import ENOUGH, most_explained
from gflowexplainer.rewards.effect import LITTLE
from gflowexplainer.rewards.evidence_trial import EvidenceTrial

DOUBTED, TRUSTED = 0.8, 0.9
"""Shares of what can be reproduced from which on own evidence counts a little, and fully, in masks of classes."""
MUCH = 0.75
"""How far the best subgraphs of graphs have to be needed and not enough for it to count fully."""
OF_NODES, OF_GRAPHS = 1.0, 2.0
"""What fully trusted own evidence counts in masks; graphs have several places."""
ALONE = 4.0
"""What it counts where the distribution follows it too, and only orders what it does not tell apart."""


def mask_weight(trials: Sequence[EvidenceTrial], chosen: EvidenceTrial, level: str) -> float:
    """Returns what an instance's own evidence counts in masks, where the distribution counts 1.

    Explanations of a node are one connected place, which shared evidence that says nearly the same has found already;
    but where what that rates best does much to the class and is not enough, it found a part of the place. And where
    even the best such place neither holds the class nor is needed for it, many nodes do a little each, and what single
    ones do is no explanation. Where gradients were needed, removing nodes shows little.

    Args:
        trials: Everything that was tried.
        chosen: What was taken.
        level: What is explained: ``"graph"``, or one place around a node or link.
    """
    if chosen.by_gradients:
        return 0.0
    if not chosen.evidence.is_shared:
        return ALONE
    trials = [trial for trial in trials if not trial.by_gradients]
    nearest = max(trial.keep_probability for trial in trials)
    near = [trial for trial in trials if trial.keep_probability == nearest]
    own = most_explained(trial for trial in near if trial.evidence == EvidenceType.own)
    if own is None or own.reproducible <= 0:
        return 0.0
    trust = (own.clarity - DOUBTED) / (TRUSTED - DOUBTED)
    if level == "graph":
        several = (max(trial.incomplete for trial in trials) - LITTLE) / (MUCH - LITTLE)
        return OF_GRAPHS * _share(max(trust, several))
    beside = max(trial.explained for trial in near if trial.evidence.is_shared)
    found_part = chosen.does_much and chosen.incomplete > LITTLE
    found_already = beside >= ENOUGH * own.explained and not found_part
    return 0.0 if found_already or chosen.does_little else OF_NODES * _share(trust)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
