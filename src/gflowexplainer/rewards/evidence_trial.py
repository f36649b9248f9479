"""One kind of evidence, measured in one way, and how it did: what is chosen among, stored and reported."""

from __future__ import annotations

from dataclasses import dataclass

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.base import REMOVALS

_KINDS = (EvidenceType.shared, EvidenceType.both, EvidenceType.own, EvidenceType.features)


@dataclass(frozen=True)
class EvidenceTrial:
    """How well one kind of evidence, measured in one way, predicts the model where it was not fitted.

    Attributes:
        evidence: What nodes are told apart by: ``"shared"``, ``"features"``, ``"own"`` or ``"both"``.
        keep_probability: Share of the nodes that contexts kept.
        removal: What "without the rest" meant.
        by_class: Whether classes have weights of their own.
        explained: Share of the variance within instances that is explained, on instances that were not fitted.
        reproducible: Share of it that another draw of contexts would show again: the most that can be explained.
        effect: What the subgraphs that it rates best do: the class's probability with only them and its fall without
            them, the mean of both; ``None`` where the model was not, or cannot be, asked.
        incomplete: How far those subgraphs are needed and not enough, in [0, 1]; ``None`` likewise.
        by_gradients: Whether it was fitted to what gradients say of whole graphs, and not to what the model says of
            contexts: then ``explained`` is of that, and all of it can be reproduced.
    """

    evidence: EvidenceType
    keep_probability: float
    removal: str
    by_class: bool
    explained: float
    reproducible: float
    effect: float | None = None
    incomplete: float | None = None
    by_gradients: bool = False

    def row(self) -> list[float]:
        """Returns numbers, for a tensor."""
        made = [_KINDS.index(self.evidence), self.keep_probability, REMOVALS.index(self.removal), self.by_class]
        did = [self.explained, self.reproducible, self.effect or 0.0, self.incomplete or 0.0, self.effect is not None]
        return [*map(float, made), *map(float, did), float(self.by_gradients)]

    @classmethod
    def from_row(cls, row: list[float]) -> EvidenceTrial:
        """Reads what :meth:`row` gave."""
        kind, keep, removal, by_class, explained, reproducible, effect, incomplete, asked, by_gradients = row
        return cls(
            _KINDS[int(kind)],
            keep,
            REMOVALS[int(removal)],
            bool(by_class),
            explained,
            reproducible,
            effect if asked else None,
            incomplete if asked else None,
            bool(by_gradients),
        )
