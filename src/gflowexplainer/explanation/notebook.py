"""What a terminal shows of an explanation without evaluating the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gflowexplainer.explanation.ranked import class_of, counted, named, shown

_MOST_NODES = 12


def in_words(explanation: Any) -> str:
    """Says in a few lines what is predicted, which subgraph comes first, and how sure that is.

    Nothing is computed for it: what the model predicts with and without a subgraph is asked for at the subgraph.
    """
    best, parts = explanation.subgraphs[0], next(iter(explanation.known("parts")), None)
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
