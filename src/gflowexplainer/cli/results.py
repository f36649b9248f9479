"""The results of ``explain``, as data and as a table: what is shown is what pictures and the report show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gflowexplainer.drawing.answer import called, enough, lines, main_set, needed, predictions
from gflowexplainer.report.run_folder import FORMAT, Run
from gflowexplainer.report.tables import NOT_THERE, Table, number

if TYPE_CHECKING:
    from gflowexplainer.report import Case

TOP = 10
"""Subgraphs of an instance that are listed in the results; its file holds all."""


def summary(run: Run, cases: Sequence[Case], summaries: Mapping[str, Any]) -> dict[str, Any]:
    """Returns everything that a program wants to know, as plain values."""
    entries = [_entry(case) | ({"summary": summaries[case.name]} if summaries else {}) for case in cases]
    return {"format": FORMAT, "command": run.config["command"], "run": str(run.folder), "instances": entries}


def _entry(case: Case) -> dict[str, Any]:
    explanation = case.explanation
    probability = explanation.node_probability()
    order = sorted(probability.nonzero()[0].tolist(), key=lambda node: (-probability[node], node))

    def names(nodes: Sequence[int]) -> list[Any]:
        return [*nodes] if case.names is None else [case.names[node] for node in nodes]

    entry = {
        "name": case.name,
        "answer": dict(lines(case)),
        "class": explanation.explained_class,
        "prediction": explanation.whole_prediction,
        "subgraphs": [one.to_dict() | {"nodes": names(one.nodes)} for one in explanation.subgraphs[:TOP]],
        "num_subgraphs": len(explanation.subgraphs),
        "num_samples": explanation.num_samples,
        "error": explanation.error,
        "parts": None if explanation.known_parts is None else explanation.known_parts.to_dict(),
        "counterfactual": next((found.to_dict() for found in explanation.known_counterfactuals), None),
        "warnings": explanation.warnings,
        "nodes": dict(zip(map(str, names(order)), map(float, probability[order]), strict=True)),
        "certificate": explanation.certificate.to_dict() if explanation.certificate.distance is not None else None,
    }
    if explanation.explained_link is not None:
        paths = [path.to_dict() | {"nodes": names(path.nodes)} for path in explanation.paths(TOP)]
        entry |= {"connected": explanation.connected, "paths": paths}
    return entry


def changes(cases: Sequence[Case]) -> list[str]:
    """Returns what would change the prediction of each instance, as far as that is known."""
    return [f"{case.name}: {found}" for case in cases for found in case.explanation.known_counterfactuals[:1]]


def warnings(cases: Sequence[Case]) -> list[str]:
    """Returns what speaks against the explanations; what is said of several, once."""
    said: dict[str, list[str]] = {}
    for case in cases:
        parts = case.explanation.known_parts
        doubts = [] if parts is None or parts.holds else [parts.verdict()]
        for warning in [*doubts, *case.explanation.warnings]:
            said.setdefault(warning, []).append(case.name)
    more = {warning: f" and {len(names) - 1} more" if len(names) > 1 else "" for warning, names in said.items()}
    return [f"{names[0]}{more[warning]}: {warning}" for warning, names in said.items()]


def table(cases: Sequence[Case]) -> Table:
    """Returns a table of the one set of nodes of each instance, whether it is enough and needed, and how sure."""
    rows = []
    for case in cases:
        explanation, main = case.explanation, main_set(case.explanation)
        place = explanation.explained_class or 0
        only, without = (NOT_THERE if one is None else number(one[place]) for one in predictions(main))
        certified = explanation.known_certificate.distance
        rows.append(
            (
                called(case),
                dict(lines(case)).get("prediction", NOT_THERE),
                ", ".join(map(case.node_name, main.nodes)),
                f"{only} {enough(explanation)}".rstrip(),
                f"{without} {needed(explanation)}".rstrip(),
                number(explanation.error if certified is None else certified),
            )
        )
    heads = ("instance", "prediction", "because of", "with only it: enough?", "without it: needed?", "error")
    return Table("Explanations", heads, tuple(rows))
