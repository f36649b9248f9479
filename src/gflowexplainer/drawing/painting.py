"""Scenes painted by matplotlib, for papers: graphs, molecules as structures, sentences as words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gflowexplainer.drawing.colours import (
    OUTLINE,
    PARTS,
    TRUTH,
    TYPES,
    colour,
    colour_scale,
    edge_colour,
    ink,
    require_matplotlib,
)
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AREAS = (430.0, 110.0, 36.0)
"""Areas of nodes of the explanation, of those beside it and of the surroundings, in square points."""
MARKERS = ("o", "s", "D", "^", "h", "v", "p", "8")
"""Shapes of the types of nodes, in the order of their names."""
_HALO, _BOND, _LINE = 15.0, 1.3, 72
_LEAST_SIDE = 0.4
"""Height of a drawing by its width at least, or width by height."""


def draw(scene: Scene, title: str, path: str | Path | None, ax: Axes | None) -> Axes:
    """Draws with matplotlib, on ``ax`` or a figure of its own, and saves to ``path`` if there is one."""
    require_matplotlib()
    if path is not None:
        _check_ending(Path(path))
    size = (8.0, 1.2 + 0.36 * lines_of_words(scene)[-1][1]) if scene.kind == "sentence" else (6.0, 5.0)
    if ax is None and path is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=size, layout="constrained")[1]
    elif ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=size, layout="constrained").add_subplot()
    paint(ax, scene)
    ax.set_title(title, fontsize=10, parse_math=False, pad=34 if scene.parts else 6)
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.colorbar(colour_scale(), ax=ax, label="probability", shrink=0.7)
    if path is not None:
        try:
            figure.savefig(path, dpi=150)
        except OSError as error:
            raise ConfigError(
                f"The picture '{path}' could not be written: {error.strerror or error}. Choose another folder."
            ) from error
    return ax


def panel_size(scene: Scene) -> tuple[float, float]:
    """Returns width and height of a drawing in inches, by its own shape."""
    if scene.kind == "sentence":
        return 6.4, 0.36 * (lines_of_words(scene)[-1][1] + 1) + 0.1
    wide, high = np.ptp(scene.place, axis=0) + 60.0
    return 4.0, float(np.clip(4.0 * high / wide, 1.5, 4.4))


def _check_ending(path: Path) -> None:
    """Refuses a file whose ending names no format of pictures; one without an ending becomes a PNG."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = sorted(FigureCanvasBase.get_supported_filetypes())
    ending = path.suffix[1:].lower()
    if ending and ending not in known:
        raise ConfigError(
            f"'{path}' ends in '.{ending}', which is no format of pictures. Use one of {', '.join(known)}."
        )


def paint(ax: Axes, scene: Scene, other: str | None = None) -> None:
    """Draws the explanation, or the scores of an ``other`` explainer, on ``ax``, without title and colour bar."""
    if other is None and scene.kind != "sentence":
        paint_parts(ax, scene, 20.0 if scene.kind == "molecule" else AREAS[0] ** 0.5 + 9)
    {"sentence": paint_sentence, "molecule": paint_molecule, "graph": paint_graph}[scene.kind](ax, scene, other)


def paint_parts(ax: Axes, scene: Scene, width: float) -> None:
    """Lays a band of its own colour and ``width``, in points, under each of several parts, with its number above."""
    from matplotlib.collections import LineCollection

    for number, part in enumerate(scene.parts):
        tint, dark = PARTS[number % len(PARTS)]
        lines = list(scene.place[scene.ends[scene.inside_part(part)]])
        ax.add_collection(
            LineCollection(lines, colors=tint, linewidths=width, capstyle="round", zorder=-1, clip_on=False)
        )
        x, y = scene.place[part].T
        ax.scatter(x, y, s=width**2, c=tint, linewidths=0, zorder=-1, clip_on=False)
        if part.size:
            top = scene.place[part[scene.place[part, 1].argmax()]]
            box = {"boxstyle": "circle,pad=0.25", "facecolor": dark, "edgecolor": "none"}
            style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom", "bbox": box}
            text = (0.0, 0.5 * width + 3)
            ax.annotate(str(number + 1), tuple(top), text, fontsize=8, color="white", zorder=4, **style)


def paint_graph(ax: Axes, scene: Scene, other: str | None) -> None:
    """Draws nodes and edges: those of the explanation large and labelled, the others faint; a ring is the explained."""
    from matplotlib.collections import LineCollection

    place, level, values, scores = scene.place, scene.levels, scene.values, scene.edge_values
    if other is not None:
        values, scores = scene.node_scores(other), scene.others[other]
    rank = np.argsort(scores, kind="stable")
    lines, widths = place[scene.ends], 0.8 + 3.2 * scores
    area = np.array(AREAS)[level]
    if scene.truth is not None and scene.truth.any():
        # A dashed band under the edge, and a white one on it: what is left are dashes on both sides.
        for colour_of_band, more, style in ((TRUTH, 6.0, (0, (1.2, 0.5))), ("white", 3.2, "solid")):
            band: dict[str, Any] = {"linewidths": widths[scene.truth] + more, "linestyles": [style], "zorder": 0}
            ax.add_collection(LineCollection(list(lines[scene.truth]), colors=colour_of_band, **band))
        inside = scene.truth_nodes
        dashes: dict[str, Any] = {"c": "white", "edgecolors": TRUTH, "linewidths": 1.3, "linestyles": "--"}
        ax.scatter(place[inside, 0], place[inside, 1], s=(area[inside] ** 0.5 + 6) ** 2, zorder=0.5, **dashes)
    shades = [edge_colour(value) for value in scores[rank]]
    ax.add_collection(LineCollection(list(lines[rank]), colors=shades, linewidths=widths[rank], zorder=1))
    _paint_link(ax, scene)
    kinds = scene.kinds or [""]
    for number, kind in enumerate(kinds):
        mine = np.flatnonzero([kind == name for name in scene.types or [""] * len(place)])
        ring = np.isin(mine, scene.marked)
        outline = TYPES[number % len(TYPES)] if scene.types else OUTLINE
        look: dict[str, Any] = {
            "c": [colour(value) for value in values[mine]],
            "edgecolors": ["black" if marked else outline for marked in ring],
            "linewidths": np.where(ring, 2.6, 1.8 if scene.types else 0.7),
            "marker": MARKERS[number % len(MARKERS)],
        }
        ax.scatter(place[mine, 0], place[mine, 1], s=area[mine], zorder=2, **look)
    if scene.types or scene.link is not None:
        _add_legend(ax, scene)
    _write_relations(ax, scene)
    labels = scene.labels if scene.labels is not None else [str(node) for node in scene.nodes]
    for slot in np.flatnonzero(level < 2):
        _write(ax, labels[slot], place[slot], float(area[slot]) ** 0.5, values[slot], large=level[slot] == 0)
    _frame(ax, place, 0.12)


def _paint_link(ax: Axes, scene: Scene) -> None:
    """Draws the explained link, which is no edge that anything may be explained by, as dots between its ends."""
    if scene.link is not None:
        ax.plot(*scene.place[list(scene.link)].T, color="black", linewidth=1.4, linestyle=":", zorder=0.8)


def _add_legend(ax: Axes, scene: Scene) -> None:
    """Writes below the drawing which shape is which type, and what is explained."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"linestyle": "", "markerfacecolor": colour(0), "markersize": 8}
    entries = [
        Line2D([], [], marker=MARKERS[k % len(MARKERS)], markeredgecolor=TYPES[k % len(TYPES)], label=kind, **look)
        for k, kind in enumerate(scene.kinds)
    ]
    for entry in entries:
        entry.set_markeredgewidth(1.8)
    if scene.link is not None:
        black: dict[str, Any] = {"color": "black", "linestyle": ":", "marker": "o", "markerfacecolor": "white"}
        entries.append(Line2D([], [], markersize=8, markeredgewidth=2.2, label="explained link", **black))
    elif scene.ringed is not None:
        entries.append(Line2D([], [], marker="o", markeredgecolor="black", label="explained", **look))
        entries[-1].set_markeredgewidth(2.2)
    legend = ax.legend(
        handles=entries, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, fontsize=8, frameon=False
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _write_relations(ax: Axes, scene: Scene) -> None:
    """Writes on each edge of the explanation which relation it is."""
    if scene.relations is None:
        return
    for (a, b), name in zip(scene.ends, scene.relations, strict=True):
        if scene.levels[a] == scene.levels[b] == 0 and name:
            x, y = (scene.place[a] + scene.place[b]) / 2
            text = name if len(name) <= 24 else name[:23] + "…"
            back = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
            ax.text(x, y, text, fontsize=6.5, ha="center", va="center", zorder=1.5, parse_math=False, bbox=back)


def _write(ax: Axes, label: str, place: np.ndarray, width: float, value: float, *, large: bool) -> None:
    """Writes a label on its node, or below it where it is long; labels are the user's: a dollar starts no formula."""
    if len(label) <= 5 or not large:
        text = label if len(label) <= 8 else label[:7] + "…"
        font = 0.5 * width * min(1.0, 3.0 / max(len(text), 1))
        middle: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 3, "parse_math": False}
        ax.text(place[0], place[1], text, fontsize=font, color=ink(value), **middle)
        return
    text = label if len(label) <= 24 else label[:23] + "…"
    below: dict[str, Any] = {"xytext": (0, -0.62 * width), "textcoords": "offset points", "ha": "center", "va": "top"}
    ax.annotate(text, (place[0], place[1]), fontsize=8, zorder=3, parse_math=False, **below)


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
    _frame(ax, place, 0.1)


def _frame(ax: Axes, place: np.ndarray, margin: float) -> None:
    """Makes room for nodes at ``place`` ``[n, 2]``, also where they lie on one line: its other side has some width."""
    low, high = place.min(axis=0), place.max(axis=0)
    room = np.maximum(high - low, _LEAST_SIDE * ((high - low).max() or 1.0))
    middle = (low + high) / 2
    ax.update_datalim([middle - room / 2, middle + room / 2])
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.margins(margin)


def lines_of_words(scene: Scene) -> list[tuple[float, int, float, str]]:
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
    words = lines_of_words(scene)
    for slot, (left, line, width, shown) in enumerate(words):
        value, ringed = values[slot], slot == scene.ringed
        style: dict[str, Any] = {
            "facecolor": colour(value) if value > 0 else "none",
            "linewidth": 2.0 if ringed else 0.5,
        }
        edge = "black" if ringed else OUTLINE if value > 0 else "none"
        part = next((number for number, nodes in enumerate(scene.parts) if other is None and slot in nodes), None)
        if part is not None:
            edge, style["linewidth"] = PARTS[part % len(PARTS)][1], 2.0
            ax.text(left + width, -line + 0.3, str(part + 1), fontsize=6.5, color=edge, ha="right", va="bottom")
        ax.add_patch(Rectangle((left, -line - 0.3), width, 0.6, edgecolor=edge, **style))
        place: dict[str, Any] = {"ha": "center", "va": "center", "family": "monospace", "parse_math": False}
        ax.text(left + width / 2, -line, shown, fontsize=8.5, color=ink(value), **place)
        if scene.truth_nodes[slot]:
            dashes: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (3, 1.5)), "linewidth": 1.6}
            ax.plot([left, left + width], [-line - 0.41] * 2, **dashes)
    ax.set_xlim(-0.5, _LINE + 0.5)
    ax.set_ylim(-words[-1][1] - 0.55, 0.45)
    ax.set_axis_off()
