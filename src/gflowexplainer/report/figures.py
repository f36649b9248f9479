"""Static figures of a report, for papers: the same cases and curves, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.colours import TRUTH, colour, colour_scale, require_matplotlib
from gflowexplainer.drawing.painting import paint, panel_size
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.report.content import Report
from gflowexplainer.report.training_curves import Curve, read_curves
from gflowexplainer.storage.files import slug, write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
PNG_DPI, PNG_WIDTH, PNG_COLOURS = 140, 1280, 128
"""A PNG is for pages: so many dots an inch, pixels in width and colours at most. Papers take SVG or PDF."""
MOST_NODES, MOST_COLUMNS = 80, 4


def write_figures(report: Report, folder: Path | str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Draws each case, beside it the other explainers, and the training curves; one file for each format.

    Args:
        report: What to draw.
        folder: Where the files go; made if it is not there.
        formats: Some of ``"png"``, ``"svg"`` and ``"pdf"``.

    Returns:
        The files, in the order of the cases; the curves last.
    """
    if isinstance(formats, str) or not formats:
        raise ConfigError(f"'formats' must be a list of names such as ['png', 'svg'] (got {formats!r}).")
    for form in formats:
        one_of("formats", form, FORMATS)
    require_matplotlib()
    folder, written = Path(folder), []
    digits = len(str(len(report.cases)))
    for number, case in enumerate(report.cases, start=1):
        written += save_figure(
            _case_figure(case), folder / f"{number:0{digits}d}-{slug(case.name.lower())[:60]}", formats
        )
    curves = read_curves(report.curves)
    if curves:
        written += save_figure(_curve_figure(curves), folder / "training", formats)
    return written


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Writes a figure to ``stem`` with each format's ending, the same bytes each time; returns the files.

    A PNG is small: at most :data:`PNG_WIDTH` pixels wide, with a palette of :data:`PNG_COLOURS` colours.
    """
    import matplotlib

    paths = []
    # No date and no random ids inside: the same report gives the same files.
    with matplotlib.rc_context({"svg.hashsalt": "gflowexplainer", "svg.fonttype": "path"}):
        for form in formats:
            path = stem.with_name(f"{stem.name}.{form}")
            write_bytes(path, _small_png(figure) if form == "png" else _vectors(figure, form))
            paths.append(path)
    return paths


def _vectors(figure: Figure, form: str) -> bytes:
    """Draws a figure as SVG or PDF, without a date."""
    content = io.BytesIO()
    figure.savefig(content, format=form, metadata={"Date" if form == "svg" else "CreationDate": None})
    return content.getvalue()


def _small_png(figure: Figure) -> bytes:
    """Draws a figure as PNG with a palette, a fraction of the size of one without."""
    from PIL import Image

    drawn, content = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=min(PNG_DPI, int(PNG_WIDTH / figure.get_figwidth())))
    # Without dithering: dots around letters are larger, and harder to read, than a colour that is slightly off.
    flat = Image.open(drawn).convert("RGB").quantize(PNG_COLOURS, dither=Image.Dither.NONE)
    flat.save(content, format="png", optimize=True)
    return content.getvalue()


def _case_figure(case: Case) -> Figure:
    from matplotlib.figure import Figure

    scene = Scene.of(case, MOST_NODES).up_to(1)
    names = [None, *scene.others]
    columns = 1 if scene.kind == "sentence" else min(len(names), MOST_COLUMNS)
    rows = -(-len(names) // columns)
    width, height = panel_size(scene)
    figure = Figure(figsize=(width * columns + 1.0, (height + 0.45) * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        paint(ax, scene, name)
        ax.set_title(_title(case) if name is None else name, fontsize=10, parse_math=False)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    bar = figure.colorbar(colour_scale(), ax=list(axes), shrink=0.9, aspect=20)
    bar.set_label("probability" if len(names) == 1 else "probability, or\nscore / largest score", fontsize=9)
    _add_legend(figure, scene)
    return figure


def _title(case: Case) -> str:
    best = case.explanation.subgraphs[0]
    name = case.name if len(case.name) <= 40 else case.name[:39] + "…"
    count = "1 node" if len(best) == 1 else f"{len(best)} nodes"
    return f"{name}\nmost probable subgraph: {count}, probability {best.probability:.2f}"


def _add_legend(figure: Figure, scene: Scene) -> None:
    """Writes what a ring and dashes mean, below the drawing."""
    from matplotlib.lines import Line2D

    entries = []
    if scene.ringed is not None:
        ring: dict[str, Any] = {
            "marker": "o",
            "markeredgecolor": "black",
            "markeredgewidth": 2.4,
            "markerfacecolor": colour(0.0),
        }
        entries.append(Line2D([], [], linestyle="none", markersize=10, label="explained node", **ring))
    if scene.truth is not None:
        entries.append(Line2D([], [], color=TRUTH, linestyle=(0, (3, 1.5)), linewidth=1.6, label="ground truth"))
    if entries:
        figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), frameon=False, fontsize=9)


def _curve_figure(curves: Sequence[Curve]) -> Figure:
    from matplotlib.figure import Figure

    columns = min(len(curves), 3)
    lines = -(-len(curves) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.5 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for ax, curve in zip(axes, curves, strict=False):
        ax.plot(curve.x, curve.y, color=colour(1.0), linewidth=1.4)
        ax.set_title(curve.name, fontsize=10, parse_math=False)
        ax.set_xlabel("iteration")
        ax.spines[["top", "right"]].set_visible(False)
        if curve.logarithmic:
            ax.set_yscale("log")
    for ax in axes[len(curves) :]:
        ax.set_axis_off()
    return figure
