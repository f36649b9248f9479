"""What a notebook and a terminal show of an explanation: a drawing in a frame of its own, and plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.embedding import frame
from gflowexplainer.explanation.ranked_subgraphs import class_of, counted, named, shown
from gflowexplainer.storage.files import write_text

_MOST_NODES = 12


@dataclass(frozen=True, eq=False)
class View:
    """A drawing to be looked at: as the last line of a notebook's cell, or saved as a page.

    Attributes:
        cases: What is drawn.
        text: The same in words, for a terminal.
    """

    cases: Sequence[Case]
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return frame(self.cases, self.text)

    def save(self, path: str | Path) -> None:
        """Writes a page that holds nothing but the drawing."""
        title = escape(self.cases[0].name)
        head = f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        write_text(Path(path), f"{head}<body>{self._repr_html_()}</body></html>\n")


def in_words(explanation: Any) -> str:
    """Says in a few lines what is predicted, which subgraph comes first, and how sure that is.

    Nothing is computed for it: what the model predicts with and without a subgraph is asked for at the subgraph.
    """
    best, parts = explanation.subgraphs[0], explanation.found_parts
    listed = [f"{_nodes(part.nodes)}; with only it {shown(part.prediction_only)}" for part in parts or ()]
    rows = [
        ("prediction", _predicted(explanation)),
        ("subgraph", f"{_nodes(best.nodes)}; probability {best.probability:.3f}, reward {best.reward:.3f}"),
        ("others", f"{counted(len(explanation.subgraphs) - 1, 'further subgraph')} in .subgraphs"),
        ("samples", _samples(explanation)),
        ("certificate", _certificate(explanation)),
        *(("part", text) for text in listed),
        ("holds", "asked for by .holds, parts by .parts" if parts is None else parts.verdict()),
        *(("change", str(found)) for found in explanation.known_counterfactuals[:1]),
        *(("note", warning) for warning in explanation.warnings),
    ]
    lines = [f"  {name:<12} {text}" for name, text in rows if text]
    return "\n".join([f"{type(explanation).__name__} of {explanation.name}", *lines])


def title_of(explanation: Any) -> str:
    """Says in one line what is drawn: the parts and whether they hold, or the first subgraph."""
    parts, best = explanation.known_parts, explanation.subgraphs[0]
    if parts is None:
        return f"{explanation.name}: best subgraph of {counted(len(best), 'node')}, probability {best.probability:.2f}"
    sizes = " and ".join(str(len(part)) for part in parts)
    what = counted(len(parts.nodes), "node") if len(parts) == 1 else f"{len(parts)} parts of {sizes} nodes"
    preserved, ending = f"{100 * parts.preserved:.0f} % of the prediction", "s" if len(parts.nodes) == 1 else ""
    if parts.holds:
        return f"{explanation.name}: {what} hold{ending} {preserved}"
    random = parts.preserved_by_random
    if random is not None and parts.preserved <= random:
        return f"{explanation.name}: {what} keep{ending} {preserved}, and so do random ones"
    if preserved.startswith("100 "):
        beside = "" if random is None else f", random ones {100 * random:.0f} %"
        return f"{explanation.name}: {what} keep{ending} {preserved}{beside}"
    return f"{explanation.name}: {what} keep{ending} only {preserved}"


def one_line(explanation: Any) -> str:
    """Says in one line which class or value is explained and which subgraph comes first."""
    best, whole = explanation.subgraphs[0], explanation.whole_prediction
    explained = "" if whole is None else f"{shown(whole, explanation.explained_class)}: "
    return f"{explanation.name}, {explained}{_nodes(best.nodes)} ({best.probability:.2f})"


def _samples(explanation: Any) -> str:
    number = counted(len(explanation.subgraphs), "different subgraph")
    return f"{number}, probabilities {'exact' if explanation.error == 0 else f'off by about {explanation.error:.2f}'}"


def _certificate(explanation: Any) -> str:
    known = explanation.known_certificate
    if known.distance is not None:
        return f"distance {known.distance:.3f} to the target"
    return "asked for by .certificate" if explanation.can_certify else str(known)


def _predicted(explanation: Any) -> str:
    """Says what is predicted, and which class is explained if that is another one."""
    whole, held = explanation.whole_prediction, explanation.explained_class
    if whole is None:
        return ""
    other = held is not None and held != class_of(whole)
    return f"{shown(whole)}; explained is {shown(whole, held)}" if other else shown(whole)


def _nodes(nodes: Sequence[Any]) -> str:
    listed = ", ".join(map(named, nodes[:_MOST_NODES]))
    return f"{counted(len(nodes), 'node')} {listed}{', ...' if len(nodes) > _MOST_NODES else ''}"
