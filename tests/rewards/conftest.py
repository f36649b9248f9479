"""Trials of evidence, made by hand."""

from dataclasses import replace

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.effect import Effect
from gflowexplainer.rewards.evidence_trial import EvidenceTrial


def trial(evidence: str, explained: float, keep: float = 0.8, reproducible: float = 0.8) -> EvidenceTrial:
    """What was measured in contexts, by one set of weights."""
    return EvidenceTrial(EvidenceType(evidence), keep, "induced", False, explained, reproducible)


def by_gradients(explained: float, size: float | None, incomplete: float = 0.0) -> EvidenceTrial:
    """What was fitted to gradients on whole graphs."""
    return replace(showing(trial("shared", explained, 1.0, 1.0), size, incomplete), by_gradients=True)


def showing(one: EvidenceTrial, size: float | None, incomplete: float = 0.0) -> EvidenceTrial:
    """What it rates best has an effect of such a size, or one that is not known."""
    return replace(one, effect=None if size is None else Effect(size, incomplete, 0.0, 0.0))
