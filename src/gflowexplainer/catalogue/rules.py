"""Rules of presence and absence: which motifs in a graph go with which class of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Presence = Mapping[int, bool]
"""Whether each motif, by its number in the catalogue, lies in a graph."""
Literal = tuple[int, bool]
"""A motif by its number, and whether it is there."""
_LONGEST = 2


@dataclass(frozen=True)
class Rule:
    """If motifs are there, or not there, then the model says a class.

    Attributes:
        label: The class.
        literals: Motifs by their numbers in the catalogue, each with whether it is there.
        covers: Share of the class's graphs that fulfil it.
        right: Share of the graphs that fulfil it of which the model says the class: its fidelity.
        accuracy: Share of all graphs for which "fulfils it" and "is of the class" agree.
    """

    label: int
    literals: tuple[Literal, ...]
    covers: float
    right: float
    accuracy: float

    def fulfilled(self, presence: Presence) -> bool:
        """Returns whether a graph fulfils the rule."""
        return all(presence[motif] == there for motif, there in self.literals)

    def __str__(self) -> str:
        said = " and ".join(f"{'' if there else 'no '}motif {motif}" for motif, there in self.literals)
        return f"{said} -> class {self.label}: covers {self.covers:.0%}, right in {self.right:.0%}"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def find_rules(presences: Sequence[Presence], classes: Sequence[int], motifs: Sequence[int]) -> list[Rule]:
    """Finds for every class the rule of at most two motifs that agrees best with the model.

    Of rules that agree equally well the shortest is taken, then one of presence before one of absence.

    Args:
        presences: Which motifs lie in each graph.
        classes: Class that the model predicts of each.
        motifs: Numbers of the motifs to use, the most important first.
    """
    literals = [(motif, there) for motif in motifs for there in (True, False)]
    found = []
    for label in sorted(set(classes)):
        rules = [
            measured(label, chosen, presences, classes)
            for count in range(1, _LONGEST + 1)
            for chosen in combinations(literals, count)
            if len({motif for motif, _ in chosen}) == count
        ]
        if rules and len(set(classes)) > 1:
            found.append(max(rules, key=_quality))
    return found


def measured(label: int, literals: Sequence[Literal], presences: Sequence[Presence], classes: Sequence[int]) -> Rule:
    """Measures a rule on graphs and the classes that the model predicts of them."""
    fulfilled = [all(p[motif] == there for motif, there in literals) for p in presences]
    own = [label == c for c in classes]
    both = sum(f and o for f, o in zip(fulfilled, own, strict=True))
    agree = sum(f == o for f, o in zip(fulfilled, own, strict=True))
    return Rule(label, tuple(literals), _share(both, sum(own)), _share(both, sum(fulfilled)), _share(agree, len(own)))


def _quality(rule: Rule) -> tuple[float, int, int]:
    return round(rule.accuracy, 6), -len(rule.literals), sum(there for _, there in rule.literals)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
