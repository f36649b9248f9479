"""The HTML report: one file that needs no network, in which no text of the user's can become code."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.choice import node_limit
from gflowexplainer.drawing.data import case_data
from gflowexplainer.drawing.embedding import SCRIPTS, asset, embedded_json, policy
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError
from gflowexplainer.report.comparison import comparison
from gflowexplainer.report.content import Report
from gflowexplainer.report.training_curves import read_curves
from gflowexplainer.storage.files import write_text
from gflowexplainer.version import __version__

MOST_ASKED = 20
"""Cases whose certificates, and what would change them, are computed for a report, where they can still be."""
_CURVE = (300, 120)


def write_report(report: Report, path: Path | str) -> Path:
    """Writes the report as one HTML file; an older one stays until the new one is whole.

    Returns:
        The path of the file.
    """
    return write_text(path, render(report))


def render(report: Report) -> str:
    """Returns the HTML of a report."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ConfigError("Reports need jinja2. Install it with 'pip install jinja2'.") from error
    assets = files("gflowexplainer.report") / "assets"
    style = asset("drawing.css") + (assets / "page.css").read_text(encoding="utf-8")
    script = "\n".join([*map(asset, SCRIPTS), (assets / "page.js").read_text(encoding="utf-8")])
    for case in report.cases[:MOST_ASKED]:
        _ = case.explanation.certificate  # computed when asked for
        case.explanation.ask()
    limit = node_limit(len(report.cases))
    scenes = [Scene.of(case, limit) for case in report.cases]
    cases = [case_data(case, scene) for case, scene in zip(report.cases, scenes, strict=True)]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((assets / "page.html").read_text(encoding="utf-8"))
    return template.render(
        report=report,
        tables=[*comparison(report.cases), *report.tables],
        rows=[_row(case, scene) for case, scene in zip(report.cases, scenes, strict=True)],
        has_truth=any(case.truth is not None for case in report.cases),
        data=Markup(embedded_json({"cases": cases})),
        style=Markup(style),
        script=Markup(script),
        policy=policy(script, style),
        curves=[(curve, curve.path(*_CURVE)) for curve in read_curves(report.curves)],
        curve_size=_CURVE,
        settings=_unfolded(report.settings),
        environment=_unfolded(report.environment),
        version=__version__,
    )


def _row(case: Case, scene: Scene) -> dict[str, Any]:
    """Returns the line of a case in the table of instances."""
    explanation, best = case.explanation, case.explanation.subgraphs[0]
    whole, explained = explanation.whole_prediction, explanation.explained_class
    if explained is None and len(best.prediction_only) > 1:
        explained = best.class_only
    column = explained if explained is not None else 0
    parts = explanation.known_parts
    return {
        "name": case.name,
        "holds": None if parts is None else parts.holds,
        "label": "" if explained is None else class_name(case, explained),
        "numbers": [
            None if whole is None else whole[column],
            best.prediction_only[column],
            best.prediction_without[column],
            best.probability,
        ],
        "size": len(best),
        "found": scene.found,
    }


def class_name(case: Case, number: int) -> str:
    """Returns the name of a class, or its number where it has none."""
    known = case.classes is not None and 0 <= number < len(case.classes)
    return str(case.classes[number]) if known and case.classes is not None else f"class {number}"


def _unfolded(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Returns names and values as text; mappings inside become dotted names."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            rows += _unfolded(value, f"{prefix}{name}.")
        else:
            rows.append(
                (f"{prefix}{name}", ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
            )
    return rows
