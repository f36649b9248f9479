"""The results of ``explain``, as data and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gflowexplainer.drawing.answer import best_class, called, enough, main_set, needed, predictions
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

    def called(nodes: Sequence[int]) -> dict[str, Any]:
        return {"nodes": [*nodes] if case.names is None else [case.names[node] for node in nodes]}

    entry = {
        "name": case.name,
        "class": explanation.explained_class,
        "prediction": explanation.whole_prediction,
        "subgraphs": [one.to_dict() | called(one.nodes) for one in explanation.subgraphs[:TOP]],
        "num_subgraphs": len(explanation.subgraphs),
        "num_samples": explanation.num_samples,
        "error": explanation.error,
        "parts": None if explanation.known_parts is None else explanation.known_parts.to_dict(),
        "counterfactual": next((found.to_dict() for found in explanation.known_counterfactuals), None),
        "warnings": explanation.warnings,
        "nodes": dict(zip(map(str, called(order)["nodes"]), map(float, probability[order]), strict=True)),
        "certificate": explanation.certificate.to_dict() if explanation.certificate.distance is not None else None,
    }
    if explanation.explained_link is not None:
        paths = [path.to_dict() | called(path.nodes) for path in explanation.paths(TOP)]
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
    """Returns a table of the explanation of each instance: the nodes that report and picture show, by their numbers."""
    certified = any(case.explanation.certificate.distance is not None for case in cases)
    heads = ("instance", "predicted", "explanation", "with all", "with only it", "without it", "enough", "needed")
    rows = []
    for case in cases:
        explanation, main = case.explanation, main_set(case.explanation)
        explained, whole = explanation.explained_class, explanation.whole_prediction
        row = [called(case), _class(case), _nodes(case, main.nodes)]
        row += [NOT_THERE if one is None else number(one[explained or 0]) for one in (whole, *predictions(main))]
        row += [enough(explanation) or NOT_THERE, needed(explanation) or NOT_THERE]
        row += [number(explanation.certificate.distance)] if certified else []
        rows.append(tuple(row))
    return Table("Explanations", heads + (("distance",) if certified else ()), tuple(rows))


def _class(case: Case) -> str:
    """Returns what the model predicts, and which class is explained if that is another one."""
    whole, explained = case.explanation.whole_prediction, case.explanation.explained_class
    if whole is None or explained is None:
        return NOT_THERE if whole is None else ", ".join(f"{value:.3g}" for value in whole)
    best = best_class(whole) if len(whole) > 1 else explained
    said = case.class_name(best)
    return said if best == explained else f"{said} (explained: {case.class_name(explained)})"


def _nodes(case: Case, nodes: Sequence[int]) -> str:
    """Returns nodes by id and name; a name that is the id is not repeated."""
    if case.names is not None:
        return ", ".join(case.names[node] for node in nodes)
    texts = case.words or case.labels
    named = [str(node) if texts is None else texts[node] for node in nodes]
    return " ".join(text if text == str(node) else f"{node}:{text}" for node, text in zip(nodes, named, strict=True))
