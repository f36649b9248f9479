"""The HTML report: one file that needs no network, in which no text of the user's can become code."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.ranked_subgraphs import RankedSubgraph
from gflowexplainer.report.content import Case, Report
from gflowexplainer.report.scene import Scene, node_limit
from gflowexplainer.report.training_curves import read_curves
from gflowexplainer.storage.files import write_bytes
from gflowexplainer.version import __version__

MOST_SUBGRAPHS = 25
"""Ranked subgraphs that are listed of one case."""
_SCRIPTS = ("drawing.js", "case.js", "page.js")
_EDGE, _MARGIN, _SMALLEST = 46.0, 30.0, (440.0, 260.0)
_CURVE = (300, 120)


def write_report(report: Report, path: Path | str) -> Path:
    """Writes the report as one HTML file; an older one stays until the new one is whole.

    Returns:
        The path of the file.
    """
    path = Path(path)
    # A lone surrogate in somebody's label is no reason to lose a report.
    content = render(report).encode("utf-8", errors="replace")
    try:
        write_bytes(path, content)
    except OSError as error:
        raise ConfigError(
            f"The report '{path}' could not be written: {error.strerror or error}. Choose another file."
        ) from error
    return path


def render(report: Report) -> str:
    """Returns the HTML of a report."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ConfigError("Reports need jinja2. Install it with 'pip install jinja2'.") from error
    assets = files("gflowexplainer.report") / "assets"
    style = (assets / "page.css").read_text(encoding="utf-8")
    script = "\n".join((assets / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    limit = node_limit(len(report.cases))
    scenes = [Scene.of(case, limit) for case in report.cases]
    cases = [case_data(case, scene) for case, scene in zip(report.cases, scenes, strict=True)]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((assets / "page.html").read_text(encoding="utf-8"))
    return template.render(
        report=report,
        rows=[_row(case, scene) for case, scene in zip(report.cases, scenes, strict=True)],
        has_truth=any(case.truth is not None for case in report.cases),
        data=Markup(embedded_json({"cases": cases})),
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'",
        curves=[(curve, curve.path(*_CURVE)) for curve in read_curves(report.curves)],
        curve_size=_CURVE,
        settings=_unfolded(report.settings),
        environment=_unfolded(report.environment),
        version=__version__,
    )


def embedded_json(data: Any) -> str:
    """Writes JSON that cannot end the script element it stands in, nor begin a comment or an entity there."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def case_data(case: Case, scene: Scene) -> dict[str, Any]:
    """Returns what the page draws of a case, as plain values; positions are in pixels, y downwards."""
    explanation = case.explanation
    place, width, height, radius = _pixels(scene)
    listed = explanation.top(MOST_SUBGRAPHS)
    slot = {int(node): i for i, node in enumerate(scene.nodes)}
    held = explanation.explained_class
    return {
        "name": case.name,
        "note": case.note,
        "notes": scene.notes,
        "kind": scene.kind,
        "size": [round(width, 1), round(height, 1), round(radius, 1)],
        "ids": scene.nodes.tolist(),
        "x": _rounded(place[:, 0], 1),
        "y": _rounded(place[:, 1], 1),
        "p": _rounded(scene.values),
        "labels": scene.labels,
        "names": scene.names,
        "ends": scene.ends.tolist(),
        "q": _rounded(scene.edge_values),
        "order": None if scene.order is None else _rounded(scene.order, 1),
        "truth": None if scene.truth is None else np.flatnonzero(scene.truth).tolist(),
        "found": scene.found,
        "ring": scene.ringed,
        "others": [
            {"name": name, "q": _rounded(score), "p": _rounded(scene.node_scores(name))}
            for name, score in scene.others.items()
        ],
        "subgraphs": [_subgraph(subgraph, scene, slot) for subgraph in listed],
        "more": len(explanation.subgraphs) - len(listed),
        "whole": None if explanation.whole_prediction is None else _rounded(np.array(explanation.whole_prediction), 4),
        "held": held,
        "classes": None if case.classes is None else [str(name) for name in case.classes],
        "facts": [
            f"{len(explanation.subgraphs)} different subgraphs in {explanation.num_samples} samples, weighted by "
            f"{explanation.weighting}; effective sample size {explanation.effective_sample_size:.1f}.",
            f"Certificate: {explanation.known_certificate}",
        ],
    }


def _subgraph(subgraph: RankedSubgraph, scene: Scene, slot: Mapping[int, int]) -> dict[str, Any]:
    # Words are read in their own order, nodes in that of their weight.
    nodes = sorted(subgraph.nodes) if scene.kind == "sentence" else list(subgraph.nodes)
    names = [scene.names[slot[node]] if node in slot else str(node) for node in nodes]
    return {
        "text": (" " if scene.kind == "sentence" else ", ").join(names),
        "slots": [slot[node] for node in subgraph.nodes if node in slot],
        "p": _finite(subgraph.probability),
        "r": _finite(subgraph.reward),
        "only": _rounded(np.array(subgraph.prediction_only), 4),
        "without": _rounded(np.array(subgraph.prediction_without), 4),
    }


def _row(case: Case, scene: Scene) -> dict[str, Any]:
    """Returns the line of a case in the table of instances."""
    explanation, best = case.explanation, case.explanation.subgraphs[0]
    whole, held = explanation.whole_prediction, explanation.explained_class
    if held is None and len(best.prediction_only) > 1:
        held = best.class_only
    column = held if held is not None else 0
    return {
        "name": case.name,
        "label": "" if held is None else class_name(case, held),
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


def _pixels(scene: Scene) -> tuple[np.ndarray, float, float, float]:
    """Scales a drawing: places with y downwards, width, height, and the radius of nodes that keeps them apart."""
    place = scene.place * np.array([1.0, -1.0])
    length = np.linalg.norm(place[scene.ends[:, 0]] - place[scene.ends[:, 1]], axis=1)
    place = place * _EDGE / max(float(np.median(length)) if length.size else 1.0, 1e-9)
    radius = 15.0
    if len(place) > 1:
        apart = np.linalg.norm(place[:, None] - place[None], axis=2) + np.diag(np.full(len(place), np.inf))
        radius = float(np.clip(0.45 * np.quantile(apart.min(axis=1), 0.25), 4.5, 15.0))
    low, high = place.min(axis=0) - _MARGIN, place.max(axis=0) + _MARGIN
    size = np.maximum(high - low, _SMALLEST)
    return place - (low + high - size) / 2, float(size[0]), float(size[1]), radius


def _rounded(values: np.ndarray, digits: int = 3) -> list[float | None]:
    return [_finite(value, digits) for value in np.asarray(values, dtype=float).tolist()]


def _finite(value: float, digits: int = 4) -> float | None:
    """Shortens a number; JSON knows neither NaN nor infinity."""
    return round(value, digits) if math.isfinite(value) else None


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


def _hash(text: str) -> str:
    """Names an inline script or style, so that the page's policy allows it and nothing else."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
