"""The HTML report: one file that needs no network, in which no text of the user's can become code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from gflowexplainer.drawing.answer import best_class, called, enough, main_set, needed, predictions
from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.page import SCRIPTS, asset, case_data, embedded_json, policy
from gflowexplainer.drawing.scene import Scene, node_limit
from gflowexplainer.errors import ConfigError
from gflowexplainer.report.tables import NOT_THERE, Table, number
from gflowexplainer.storage.files import write_text
from gflowexplainer.version import __version__

MOST_ASKED = 20
"""Cases whose certificates, and what would change them, are computed for a report, where they can still be."""
MOST_POINTS = 300
"""Points that a curve is drawn by."""
TITLES = {"loss": "loss", "log_score": "mean log-reward of samples", "size": "mean size of samples"}
_CURVE = (300, 120)


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that a report shows.

    Attributes:
        title: What stands above it.
        cases: Explained instances, in order; there may be none where there are curves or tables.
        curves: Records of a training, as :class:`~gflowexplainer.training.trainer.Trainer` writes them to its metrics.
        settings: Shown as a table; mappings inside are unfolded.
        environment: Versions and the like, shown as a table.
        tables: Further tables, such as scores.
        command: What made the report.
    """

    title: str
    cases: Sequence[Case]
    curves: Sequence[Mapping[str, float]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    command: str = ""

    def __post_init__(self) -> None:
        if not (self.cases or self.curves or self.tables):
            raise ConfigError(
                "There is nothing to report. Pass explained instances as 'cases', or 'tables' or 'curves'."
            )
        for name, count in Counter(case.name for case in self.cases).most_common(1):
            if count > 1:
                raise ConfigError(f"{count} cases are called '{name}'. Give each case a name of its own.")


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
        rows=[_row(case) | {"found": scene.found} for case, scene in zip(report.cases, scenes, strict=True)],
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


def _row(case: Case) -> dict[str, Any]:
    """Returns the line of a case in the table of instances: of the same nodes as everything else that is shown."""
    explanation, main = case.explanation, main_set(case.explanation)
    whole, label = explanation.whole_prediction, explanation.explained_class
    rows = (whole, *predictions(main))
    known = next((row for row in rows if row is not None), ())
    if label is None and len(known) > 1:
        label = best_class(known)
    numbers = [None if row is None else row[label or 0] for row in rows]
    return {
        "name": case.name,
        "called": called(case),
        "label": "" if label is None else case.class_name(label),
        "numbers": [value if value is None or math.isfinite(value) else None for value in numbers],
        "size": len(main.nodes),
        "answers": [enough(explanation), needed(explanation)],
    }


def _unfolded(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Returns names and values as text; mappings inside become dotted names."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            rows += _unfolded(value, f"{prefix}{name}.")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            rows.append((f"{prefix}{name}", text))
    return rows


def comparison(cases: Sequence[Case]) -> list[Table]:
    """Makes a table of the runs that cases are compared with; none if there are none.

    Each run is counted over the instances that it explains; shared nodes are those of both explanations over those of
    either (the Jaccard index).
    """
    names = list(dict.fromkeys(name for case in cases for name in case.beside))
    if not names:
        return []
    heads = ("run", "instances", "class kept with only it", "class changed without it", "nodes", "nodes shared")
    rows = [_run("this run", [(case.explanation, case.explanation) for case in cases], alone=True)]
    for name in names:
        rows.append(_run(name, [(case.explanation, case.beside[name]) for case in cases if name in case.beside]))
    return [Table("Comparison of the explanations", heads, tuple(rows))]


def _run(name: str, pairs: Sequence[tuple[Any, Any]], *, alone: bool = False) -> tuple[str, ...]:
    sets = [(main_set(mine), main_set(theirs), theirs.explained_class) for mine, theirs in pairs]
    said = [(*predictions(theirs), label) for _, theirs, label in sets if label is not None]
    kept = [best_class(only) == label for only, _, label in said if only is not None]
    changed = [best_class(without) != label for _, without, label in said if without is not None]
    shared = [len({*a.nodes} & {*b.nodes}) / len({*a.nodes} | {*b.nodes}) for a, b, _ in sets]
    return (
        name,
        str(len(pairs)),
        *(f"{sum(hits)} of {len(hits)}" if hits else NOT_THERE for hits in (kept, changed)),
        number(float(np.mean([len(theirs.nodes) for _, theirs, _ in sets])), digits=1),
        NOT_THERE if alone else number(float(np.mean(shared)), digits=2),
    )


@dataclass(frozen=True, eq=False)
class Curve:
    """One quantity of a training over the iterations.

    Attributes:
        name: What it is.
        x: Iterations, shape ``[p]``.
        y: Values, shape ``[p]``; each a mean over neighbouring iterations where there were too many.
        logarithmic: Whether to draw it on a logarithmic scale.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    logarithmic: bool

    def path(self, width: float, height: float) -> str:
        """Writes the curve as an SVG path in a box of this size, y downwards."""
        x = _unit(self.x) * width
        y = height - _unit(np.log(self.y) if self.logarithmic else self.y) * height
        return "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))

    @property
    def bounds(self) -> tuple[str, str, str, str]:
        """First and last iteration, smallest and largest value, as they are written at the axes."""
        return f"{self.x[0]:g}", f"{self.x[-1]:g}", f"{self.y.min():.3g}", f"{self.y.max():.3g}"


def read_curves(records: Sequence[Mapping[str, float]]) -> list[Curve]:
    """Reads the quantities of training records; those with fewer than two finite values are left out."""
    names = dict.fromkeys(name for record in records for name in record if name not in ("iteration", "seconds"))
    curves = []
    for name in names:
        points = [(record.get("iteration", place), record.get(name)) for place, record in enumerate(records)]
        points = [point for point in points if all(map(_is_number, point))]
        if len(points) < 2:
            continue
        parts = np.array_split(np.array(points, dtype=float), min(len(points), MOST_POINTS))
        x, y = np.array([part.mean(axis=0) for part in parts]).T
        logarithmic = bool(y.min() > 0 and y.max() > 50 * y.min())
        curves.append(Curve(TITLES.get(name, name.replace("_", " ")), x, y, logarithmic))
    return curves


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _unit(values: np.ndarray) -> np.ndarray:
    spread = np.ptp(values)
    return (values - values.min()) / spread if spread > 0 else np.full_like(values, 0.5)
