"""The results of ``explain``, as data and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gflowexplainer.report.run_folder import FORMAT, Run
from gflowexplainer.report.tables import NOT_THERE, Table, number

if TYPE_CHECKING:
    from gflowexplainer.report import Case

TOP = 10
"""Subgraphs of an instance that are listed in the results; its file holds all."""


def summary(run: Run, cases: Sequence[Case]) -> dict[str, Any]:
    """Returns everything that a program wants to know, as plain values."""
    return {
        "format": FORMAT,
        "command": run.config["command"],
        "run": str(run.folder),
        "instances": [_entry(case) for case in cases],
    }


def _entry(case: Case) -> dict[str, Any]:
    explanation = case.explanation
    certificate = explanation.certificate
    probability = explanation.node_probability()
    order = sorted(probability.nonzero()[0].tolist(), key=lambda node: (-probability[node], node))
    return {
        "name": case.name,
        "class": explanation.explained_class,
        "prediction": explanation.whole_prediction,
        "subgraphs": [subgraph.to_dict() for subgraph in explanation.top(TOP)],
        "num_subgraphs": len(explanation.subgraphs),
        "num_samples": explanation.num_samples,
        "effective_sample_size": explanation.effective_sample_size,
        "left_out": explanation.left_out,
        "parts": None if explanation.known_parts is None else explanation.known_parts.to_dict(),
        "counterfactual": next((found.to_dict() for found in explanation.known_counterfactuals), None),
        "features": next((found.to_dict() for found in explanation.studies.knows("features")), None),
        "warnings": explanation.warnings,
        "weighting": explanation.weighting,
        "nodes": {str(node): float(probability[node]) for node in order},
        "certificate": certificate.to_dict() if certificate.distance is not None else None,
    }


def changes(cases: Sequence[Case]) -> list[str]:
    """Says of each instance what would change its prediction, as far as that was asked for."""
    return [
        f"{case.name}: {'No nodes were found whose removal changes the prediction.' if found is None else found}"
        for case in cases
        for found in case.explanation.studies.knows("counterfactual")[:1]
    ]


def warnings(cases: Sequence[Case]) -> list[str]:
    """Says of each instance what speaks against its explanation; what is said of several, once."""
    said: dict[str, list[str]] = {}
    for case in cases:
        parts = case.explanation.known_parts
        doubts = [] if parts is None or parts.holds else [parts.verdict()]
        for warning in [*doubts, *case.explanation.warnings]:
            said.setdefault(warning, []).append(case.name)
    return [f"{_few(names)}: {warning}" for warning, names in said.items()]


def _few(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def table(cases: Sequence[Case], title: str = "Explanations") -> Table:
    """Makes a table of the most probable subgraph of each instance."""
    certified = any(case.explanation.certificate.distance is not None for case in cases)
    heads = ("instance", "predicted", "most probable subgraph", "probability", "with all", "with only it", "without it")
    rows = []
    for case in cases:
        explanation = case.explanation
        best, held, whole = explanation.subgraphs[0], explanation.explained_class, explanation.whole_prediction
        row = [
            case.name,
            _class(case, whole),
            _nodes(case, best.nodes),
            number(best.probability),
            *(_held(prediction, held) for prediction in (whole, best.prediction_only, best.prediction_without)),
        ]
        if certified:
            row.append(number(explanation.certificate.distance))
        rows.append(tuple(row))
    return Table(title, heads + (("distance",) if certified else ()), tuple(rows))


def _class(case: Case, whole: Sequence[float] | None) -> str:
    """Says what the model predicts, and which class is explained if that is another one."""
    held = case.explanation.explained_class
    if whole is None or held is None:
        return NOT_THERE if whole is None else ", ".join(f"{value:.3g}" for value in whole)
    best = max(range(len(whole)), key=whole.__getitem__)
    names = case.classes or ()

    def called(number: int) -> str:
        return names[number] if number < len(names) else f"class {number}"

    return called(best) if best == held else f"{called(best)} (explained: {called(held)})"


def _held(prediction: Sequence[float] | None, held: int | None) -> str:
    """Returns the probability of the explained class, or the value of a regression."""
    if prediction is None:
        return NOT_THERE
    return number(prediction[0 if held is None else held])


def _nodes(case: Case, nodes: Sequence[int]) -> str:
    """Lists nodes by id and name; a name that is the id is not repeated."""
    texts = case.words or case.labels
    named = [str(node) if texts is None else str(texts[node]) for node in nodes]
    return " ".join(text if text == str(node) else f"{node}:{text}" for node, text in zip(nodes, named, strict=True))
