"""What recurs in explanations of a class: subgraphs grouped by canonical form, fragments counted for their whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gflowexplainer.catalogue.canonical_form import CanonicalForm
from gflowexplainer.catalogue.matching import LabelledGraph, holds
from gflowexplainer.explanation.explanation import SubgraphExplanation

_LISTED = 5
_CANDIDATES = 40
_SAMPLED_WHOLE = 0.1
"""How often a motif must be sampled, as a share of how often a fragment of it is, for the fragment to count for it."""


@dataclass
class Candidate:
    """A part that recurs.

    Attributes:
        label: The class.
        form: The part itself.
        share: Mean weight among what explanations show.
        sampled: Mean probability among the listed subgraphs.
        uses: Where it is shown: explanation and subgraph.
        fragments: Smaller ones that count for it.
    """

    label: int | None
    form: CanonicalForm
    share: float = 0.0
    sampled: float = 0.0
    uses: list[tuple[int, Any]] = field(default_factory=list)
    fragments: list[CanonicalForm] = field(default_factory=list)


def find_candidates(
    found: Sequence[SubgraphExplanation],
    graphs: Sequence[LabelledGraph],
    classes: Sequence[int | None],
    label: int | None,
    min_support: float,
) -> list[Candidate]:
    """Groups what a class's explanations show by canonical forms."""
    own = [place for place, c in enumerate(classes) if c == label]
    known: dict[CanonicalForm, Candidate] = {}
    for place in own:
        listed = _shown(found[place])
        total = sum(weight for _, weight, _ in listed) or 1.0
        for subgraph, weight, probability in listed:
            form = graphs[place].form(subgraph.nodes)
            one = known.setdefault(form, Candidate(label, form))
            one.share += weight / total / len(own)
            one.sampled += probability / len(own)
            one.uses.append((place, subgraph))
    best = sorted(known.values(), key=lambda one: (-one.share, one.form.labels, one.form.edges))[:_CANDIDATES]
    few = 2 if len(own) > 2 or min_support * len(own) >= 2 else 1
    return [one for one in best if len({place for place, _ in one.uses}) >= few]


def closed(chosen: Iterable[Candidate], inside: Mapping[CanonicalForm, Sequence[bool]]) -> list[Candidate]:
    """Counts a fragment for the whole: a motif that lies in a larger one, and in no other graphs than that.

    An explanation that shows a motif but for one node shows something that only the motif has. Which of both comes
    first in an explanation does not count here, as a model may need all but one of a motif's nodes.
    """
    left: list[Candidate] = []
    for one in sorted(chosen, key=lambda one: (-len(one.form), -one.share)):
        whole = next((w for w in left if inside[w.form] == inside[one.form] and _completes(w, one)), None)
        if whole is None:
            left.append(one)
        else:
            whole.share += one.share
            whole.fragments.append(one.form)
    return left


def _completes(whole: Candidate, part: Candidate) -> bool:
    """Returns whether one candidate is the whole of which another is a fragment.

    A whole that closes a cycle must be sampled now and then: a model may need all but one of a motif's nodes, so that
    the whole never comes first. Any other must be shown as often as the fragment: something hangs on every motif of a
    connected graph, so that a node is there by one edge says nothing.
    """
    if whole.label != part.label or len(whole.form) <= len(part.form):
        return False
    larger = LabelledGraph(whole.form.labels, whole.form.neighbors())
    smaller = LabelledGraph(part.form.labels, part.form.neighbors())
    closes = larger.cycles > smaller.cycles and _ends(larger) <= _ends(smaller)
    enough = whole.sampled >= _SAMPLED_WHOLE * part.sampled if closes else whole.share >= part.share
    return enough and holds(larger, part.form)


def _ends(graph: LabelledGraph) -> int:
    return sum(len(around) == 1 for around in graph.neighbors)


def _shown(explanation: SubgraphExplanation) -> list[tuple[Any, float, float]]:
    """Returns what an explanation shows, each with its weight and its probability among the listed subgraphs.

    Several parts are shown alone. Otherwise the first subgraph, and the one part that was measured to preserve the
    prediction, each weigh as much as all listed subgraphs by their probability.
    """
    parts = explanation.known_parts
    if parts is not None and len(parts) > 1:
        return [(part, 1.0, 1.0 / len(parts)) for part in parts]
    listed = explanation.subgraphs[:_LISTED]
    rest = sum(s.probability for s in listed) or 1.0
    shown = [(s, s.probability / rest + (1.0 if i == 0 else 0.0), s.probability / rest) for i, s in enumerate(listed)]
    return shown + ([(parts[0], 1.0, 0.0)] if parts is not None and parts.holds else [])
