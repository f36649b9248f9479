"""Static figures of a report, for papers: the same cases and curves, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gflowexplainer.drawing.answer import title
from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.painting import TRUTH, add_colour_bar, colour, paint, panel_size, require_matplotlib
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.report.page import Curve, Report, read_curves
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
        stem = folder / f"{number:0{digits}d}-{slug(case.name.lower())[:60]}"
        written += save_figure(_case_figure(case), stem, formats)
    curves = read_curves(report.curves)
    return written + (save_figure(_curve_figure(curves), folder / "training", formats) if curves else [])


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Writes a figure to ``stem`` with each format's ending, the same bytes each time; returns the files.

    A PNG is small: at most :data:`PNG_WIDTH` pixels wide, with a palette of :data:`PNG_COLOURS` colours.
    """
    import matplotlib

    paths = [stem.with_name(f"{stem.name}.{form}") for form in formats]
    # No date and no random ids inside: the same report gives the same files.
    with matplotlib.rc_context({"svg.hashsalt": "gflowexplainer", "svg.fonttype": "path"}):
        for form, path in zip(formats, paths, strict=True):
            write_bytes(path, _small_png(figure) if form == "png" else _vectors(figure, form))
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
    scene = Scene.of(case, MOST_NODES)
    titles = [title(case), *(other["name"] for other in scene.others)]
    width, height = panel_size(scene)
    columns = 1 if scene.kind == "sentence" else MOST_COLUMNS
    figure, axes = _panels(len(titles), columns, width, height + 0.45, (1.0, 0.4))
    for place, (ax, text) in enumerate(zip(axes, titles, strict=False)):
        paint(ax, scene, place - 1 if place else None)
        ax.set_title(text, fontsize=10, parse_math=False)
    said = "probability" if len(titles) == 1 else "probability, or\nscore / largest score"
    add_colour_bar(figure, scene, list(axes), said, shrink=0.9, aspect=20)
    _add_legend(figure, scene)
    return figure


def _panels(
    count: int, columns: int, width: float, height: float, more: tuple[float, float] = (0.0, 0.0)
) -> tuple[Figure, Any]:
    """Makes a figure of ``count`` drawings in rows of ``columns`` at most; the axes that are left over are off."""
    from matplotlib.figure import Figure

    columns = min(count, columns)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns + more[0], height * rows + more[1]), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.set_axis_off()
    return figure, axes


def _add_legend(figure: Figure, scene: Scene) -> None:
    """Writes what a ring and dashes mean, below the drawing."""
    from matplotlib.lines import Line2D

    entries = []
    if len(scene.marked) == 1 and not scene.types:
        ring: dict[str, Any] = {"marker": "o", "markeredgecolor": "black", "markerfacecolor": colour(0.0)}
        ring |= {"markeredgewidth": 2.4, "linestyle": "none", "markersize": 10}
        entries.append(Line2D([], [], label="explained node", **ring))
    if scene.truth is not None:
        entries.append(Line2D([], [], color=TRUTH, linestyle=(0, (3, 1.5)), linewidth=1.6, label="ground truth"))
    if entries:
        figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), frameon=False, fontsize=9)


def _curve_figure(curves: Sequence[Curve]) -> Figure:
    figure, axes = _panels(len(curves), 3, 3.4, 2.5)
    for ax, curve in zip(axes, curves, strict=False):
        ax.plot(curve.x, curve.y, color=colour(1.0), linewidth=1.4)
        ax.set_title(curve.name, fontsize=10, parse_math=False)
        ax.set_xlabel("iteration")
        ax.spines[["top", "right"]].set_visible(False)
        if curve.logarithmic:
            ax.set_yscale("log")
    return figure
