"""What a consensus is chosen from: kinds of evidence, contexts, meanings of removal, and how far classes are pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.evidence import has_shared, tells_by_features

KEPT = (0.5, 0.8)
"""Shares of the nodes that contexts keep, where it is not given."""
LOOSER = (1.0, 0.1, 0.01)
"""Shares of the pooling of classes that are tried: a few instances of each may show that the classes differ."""
MOSTLY = 0.75
"""Share that a class's own weights have in its description where pooling is weakest: what holds a default class is
nothing in particular, and only the other classes show what the model looks at."""


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
