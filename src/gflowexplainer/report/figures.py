"""Static figures of a report, for papers: the same cases and curves, drawn by matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.explanation.pictures import OUTLINE, TRUTH, colour, colour_scale, ink, paint, require_matplotlib
from gflowexplainer.report.content import Case, Report
from gflowexplainer.report.scene import Scene
from gflowexplainer.report.training_curves import Curve, read_curves
from gflowexplainer.storage.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
PNG_DPI, PNG_WIDTH, PNG_COLOURS = 140, 1280, 128
"""A PNG is for pages: so many dots an inch, pixels in width and colours at most. Papers take SVG or PDF."""
MOST_NODES, MOST_COLUMNS = 80, 4
_HALO, _BOND, _LINE = 15.0, 1.3, 72


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
        written += save_figure(_case_figure(case), folder / f"{number:0{digits}d}-{_slug(case.name)}", formats)
    curves = read_curves(report.curves)
    if curves:
        written += save_figure(_curve_figure(curves), folder / "training", formats)
    return written


def _slug(name: str) -> str:
    """Makes a file name of any text."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "case"


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
            try:
                write_bytes(path, _small_png(figure) if form == "png" else _vectors(figure, form))
            except OSError as error:
                raise ConfigError(
                    f"The figure '{path}' could not be written: {error.strerror or error}. Choose another folder."
                ) from error
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

    scene = Scene.of(case, MOST_NODES)
    names = [None, *scene.others]
    columns = 1 if scene.kind == "sentence" else min(len(names), MOST_COLUMNS)
    rows = -(-len(names) // columns)
    width, height = _panel(scene)
    figure = Figure(figsize=(width * columns + 1.0, (height + 0.45) * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        {"sentence": paint_sentence, "molecule": paint_molecule, "graph": _paint_graph}[scene.kind](ax, scene, name)
        ax.set_title(_title(case) if name is None else name, fontsize=10, parse_math=False)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    bar = figure.colorbar(colour_scale(), ax=list(axes), shrink=0.9, aspect=20)
    bar.set_label("probability" if len(names) == 1 else "probability, or\nscore / largest score", fontsize=9)
    _add_legend(figure, scene)
    return figure


def _panel(scene: Scene) -> tuple[float, float]:
    """Returns width and height of one drawing in inches, by its own shape."""
    if scene.kind == "sentence":
        return 6.4, 0.36 * (_lines_of_words(scene)[-1][1] + 1) + 0.1
    wide, high = np.ptp(scene.place, axis=0) + 1.0
    return 4.0, float(np.clip(4.0 * high / wide, 1.5, 4.4))


def _title(case: Case) -> str:
    best = case.explanation.subgraphs[0]
    name = case.name if len(case.name) <= 40 else case.name[:39] + "…"
    count = "1 node" if len(best) == 1 else f"{len(best)} nodes"
    return f"{name}\nmost probable subgraph: {count}, probability {best.probability:.2f}"


def _add_legend(figure: Figure, scene: Scene) -> None:
    """Says what a ring and dashes mean, below the drawing."""
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


def _paint_graph(ax: Axes, scene: Scene, other: str | None) -> None:
    paint(ax, scene.picture(other))
    ax.margins(0.12)


def paint_molecule(ax: Axes, scene: Scene, other: str | None) -> None:
    """Draws atoms and bonds as chemists do, on discs and bands coloured by probability."""
    from matplotlib.collections import LineCollection

    place = scene.place
    values = scene.values if other is None else scene.node_scores(other)
    scores = scene.edge_values if other is None else scene.others[other]
    lines = place[scene.ends]
    assert scene.order is not None
    if scene.truth is not None and scene.truth.any():
        dashes: dict[str, Any] = {"linewidths": _HALO + 3, "linestyles": [(0, (0.35, 0.2))]}
        ax.add_collection(LineCollection(lines[scene.truth], colors=TRUTH, zorder=0, **dashes))
        ax.add_collection(LineCollection(lines[scene.truth], colors="white", linewidths=_HALO, zorder=0))
        inside = place[scene.truth_nodes]
        ax.scatter(
            inside[:, 0],
            inside[:, 1],
            s=(_HALO + 7) ** 2,
            c="white",
            edgecolors=TRUTH,
            linewidths=1.3,
            linestyles="--",
            zorder=0.2,
        )
    for k in np.argsort(scores, kind="stable"):
        if scores[k] > 0:
            band: dict[str, Any] = {"color": colour(scores[k]), "linewidth": 0.8 * _HALO, "solid_capstyle": "round"}
            ax.plot(*lines[k].T, zorder=0.5 + 0.3 * scores[k], **band)
    some = values > 0
    ax.scatter(
        place[some, 0], place[some, 1], s=_HALO**2, c=[colour(v) for v in values[some]], linewidths=0, zorder=0.9
    )
    bonds: list[tuple[np.ndarray, np.ndarray]] = []
    dotted: list[tuple[np.ndarray, np.ndarray]] = []
    for (a, b), order in zip(lines, scene.order, strict=True):
        across = np.array([-(b - a)[1], (b - a)[0]]) * 0.07
        shifts = {0.0: [], 1.5: [-0.8], 2.0: [-0.9, 0.9], 3.0: [-1.6, 0.0, 1.6]}.get(float(order), [0.0])
        bonds += [(a + s * across, b + s * across) for s in shifts]
        dotted += [(a + s * across, b + s * across) for s in {0.0: [0.0], 1.5: [0.8]}.get(float(order), [])]
    ax.add_collection(LineCollection(bonds, colors="#1f2933", linewidths=_BOND, capstyle="round", zorder=2))
    ax.add_collection(LineCollection(dotted, colors="#1f2933", linewidths=_BOND, linestyles=":", zorder=2))
    for (x, y), symbol, value in zip(place, scene.labels or [], values, strict=True):
        if symbol:
            back = colour(value) if value > 0 else "white"
            pad = {"boxstyle": "circle,pad=0.12", "facecolor": back, "edgecolor": "none"}
            style: dict[str, Any] = {"ha": "center", "va": "center", "bbox": pad, "parse_math": False, "zorder": 3}
            ax.text(x, y, symbol, fontsize=7 if symbol == "H" else 9, color=ink(value), **style)
    ax.update_datalim(place)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.margins(0.1)


def _lines_of_words(scene: Scene) -> list[tuple[float, int, float, str]]:
    """Breaks a sentence into lines of ``_LINE`` characters: for each word its left end, line, width and text."""
    words: list[tuple[float, int, float, str]] = []
    left, line = 0.0, 0
    for word in scene.labels or []:
        shown = word if len(word) <= 40 else word[:39] + "…"
        width = len(shown) + 1.2
        if left + width > _LINE and left > 0:
            left, line = 0.0, line + 1
        words.append((left, line, width, shown))
        left += width + 0.5
    return words


def paint_sentence(ax: Axes, scene: Scene, other: str | None) -> None:
    """Sets words in lines, each on a background of its probability; dashes underline the ground truth."""
    from matplotlib.patches import Rectangle

    values = scene.values if other is None else scene.node_scores(other)
    words = _lines_of_words(scene)
    for slot, (left, line, width, shown) in enumerate(words):
        value, ringed = values[slot], slot == scene.ringed
        style: dict[str, Any] = {
            "facecolor": colour(value) if value > 0 else "none",
            "linewidth": 2.0 if ringed else 0.5,
        }
        edge = "black" if ringed else OUTLINE if value > 0 else "none"
        ax.add_patch(Rectangle((left, -line - 0.3), width, 0.6, edgecolor=edge, **style))
        place: dict[str, Any] = {"ha": "center", "va": "center", "family": "monospace", "parse_math": False}
        ax.text(left + width / 2, -line, shown, fontsize=8.5, color=ink(value), **place)
        if scene.truth_nodes[slot]:
            dashes: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (3, 1.5)), "linewidth": 1.6}
            ax.plot([left, left + width], [-line - 0.41] * 2, **dashes)
    ax.set_xlim(-0.5, _LINE + 0.5)
    ax.set_ylim(-words[-1][1] - 0.55, 0.45)
    ax.set_axis_off()


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
