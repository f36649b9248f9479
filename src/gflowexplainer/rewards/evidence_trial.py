"""One kind of evidence, measured in one way, and how it did: what is chosen among, stored and reported."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.base import REMOVALS
from gflowexplainer.rewards.effect import HELD, WEAKER, Effect

_KINDS = (EvidenceType.shared, EvidenceType.both, EvidenceType.own, EvidenceType.features)
_UNKNOWN = Effect(0.0, 0.0, 0.0, 0.0)


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
        effect: What the subgraphs that it rates best do to the class; ``None`` where the model was not evaluated on
            them, or cannot be.
        by_gradients: Whether it was fitted to gradients of the model on whole graphs, and not to its predictions in
            contexts: then ``explained`` is of these, and all of it can be reproduced.
    """

    evidence: EvidenceType
    keep_probability: float
    removal: str
    by_class: bool
    explained: float
    reproducible: float
    effect: Effect | None = None
    by_gradients: bool = False

    @property
    def clarity(self) -> float:
        """Share of what can be reproduced that is explained."""
        return self.explained / self.reproducible if self.reproducible > 0 else 0.0

    @property
    def size(self) -> float:
        """Size of the effect; 0 where it is not known."""
        return self.effect.size if self.effect else 0.0

    @property
    def incomplete(self) -> float:
        """How far the best subgraphs are needed and not enough; 0 where that is not known."""
        return self.effect.incomplete if self.effect else 0.0

    @property
    def does_little(self) -> bool:
        """Whether the best subgraphs neither hold the class nor are needed for it, as far as that is known."""
        return self.effect is not None and max(self.size, self.incomplete) < HELD

    @property
    def does_much(self) -> bool:
        """Whether they hold the class and are needed for it."""
        return self.size > HELD + WEAKER

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        effect = self.effect._asdict() if self.effect else None
        return asdict(self) | {"evidence": self.evidence.value, "effect": effect}

    def row(self) -> list[float]:
        """Returns numbers, for a tensor."""
        made = [_KINDS.index(self.evidence), self.keep_probability, REMOVALS.index(self.removal), self.by_class]
        did = [self.explained, self.reproducible, self.by_gradients, self.effect is not None]
        return [*map(float, made), *map(float, did), *(self.effect or _UNKNOWN)]

    @classmethod
    def from_row(cls, row: list[float]) -> EvidenceTrial:
        """Reads what :meth:`row` gave."""
        kind, keep, removal, by_class, explained, reproducible, by_gradients, known, *rest = row
        effect = Effect(*rest)
        return cls(
            _KINDS[int(kind)],
            keep,
            REMOVALS[int(removal)],
            bool(by_class),
            explained,
            reproducible,
            effect if known else None,
            bool(by_gradients),
        )
