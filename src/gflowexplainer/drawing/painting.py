"""Scenes painted by matplotlib, for papers and for places where scripts are off: graphs, molecules, sentences."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError
from gflowexplainer.storage.files import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

AREAS = (430.0, 110.0, 36.0)
"""Areas of nodes of the explanation, of those beside it and of the surroundings, in square points."""
MARKERS = ("o", "s", "D", "^", "h", "v", "p", "8")
"""Shapes of the types of nodes, in the order of their names."""
TYPES = ("#0072b2", "#009e73", "#a855a0", "#6b7280", "#8b5cf6", "#a16207", "#0891b2", "#be123c")
"""Colours of the outlines of typed nodes, in the order of the names of the types."""
PARTS = (("#bfe6df", "#0f766e"), ("#e4d4f7", "#6d28d9"), ("#dcebb8", "#4d7c0f"), ("#fbd5e5", "#be185d"))
"""Colours of the bands around the parts of an explanation, and of their numbers; they begin anew after the last."""
TRUTH, _OUTLINE, _INK = "#1d4ed8", "#7a8794", "#1f2933"
_AGAINST, _NONE, _FOR = (0x25, 0x63, 0xA8), (0xE6, 0xEB, 0xF0), (0xC2, 0x41, 0x0C)
_DISC, _DEEP, _LINE = 20.0, 0.7, 72
"""Points of a disc behind an atom, how deep its colour is at most (letters lie on it), and letters of a line."""
_LEAST_SIDE = 0.4
"""Height of a drawing by its width at least, or width by height."""


def colour(value: float) -> str:
    """Returns the colour of a probability in [0, 1], or of a share in [-1, 1] that may lower a value."""
    share, end = min(abs(float(value)), 1.0), _FOR if value >= 0 else _AGAINST
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(_NONE, end, strict=True))


def colour_scale(least: float = 0.0, most: float = 1.0, deep: float = 1.0) -> ScalarMappable:
    """Returns the colours of values between ``least`` and ``most``, for a colour bar, as far as ``deep`` goes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = [colour(deep * value) for value in ((0, 1) if least == 0 else (-1, 0, 1))]
    return ScalarMappable(Normalize(least, most), LinearSegmentedColormap.from_list("values", colours))


def require_matplotlib() -> None:
    """Raises an error that says what to install where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "Drawing needs matplotlib. Install it with 'pip install \"gflowexplainer[figures]\"'."
        ) from error


def draw(scene: Scene, title: str, path: str | Path | None, ax: Axes | None, level: int = 1) -> Axes:
    """Draws with matplotlib, on ``ax`` or a figure of its own, and saves to ``path`` if there is one."""
    require_matplotlib()
    size = panel_size(scene) if scene.kind == "sentence" else (6.0, 5.0)
    if ax is None and path is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=size, layout="constrained")[1]
    elif ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=size, layout="constrained").add_subplot()
    paint(ax, scene, level=level)
    ax.set_title(title, fontsize=10, parse_math=False, pad=34 if scene.parts else 6)
    figure: Any = ax.get_figure(root=True)
    add_colour_bar(figure, scene, ax)
    if path is not None:
        path = Path(path) if Path(path).suffix else Path(f"{path}.png")
        known, form = sorted(figure.canvas.get_supported_filetypes()), path.suffix[1:].lower()
        if form not in known:
            raise ConfigError(
                f"'{path}' ends in '.{form}', which is no format of pictures. Use one of {', '.join(known)}."
            )
        write_file(path, lambda file: figure.savefig(file, format=form, dpi=150))
    return ax


def add_colour_bar(figure: Any, scene: Scene, axes: Any, said: str = "probability", **style: Any) -> None:
    """Adds what the colours mean: probabilities, or what each node adds to a value."""
    bounds = (0.0, 1.0) if scene.most is None else (-scene.most, scene.most)
    scale = colour_scale(*bounds, _DEEP if scene.kind == "molecule" else 1.0)
    label = said if scene.most is None else "what a node adds to the value"
    figure.colorbar(scale, ax=axes, **{"shrink": 0.7} | style).set_label(label, fontsize=9)


def panel_size(scene: Scene) -> tuple[float, float]:
    """Returns width and height of a drawing in inches, by its own shape."""
    if scene.kind == "sentence":
        return 6.4, 0.36 * (lines_of_words(scene)[-1][1] + 1) + 0.1
    wide, high = np.ptp([scene.x, scene.y], axis=1) + 60.0
    return 4.0, float(np.clip(4.0 * high / wide, 1.5, 4.4))


def still(scene: Scene) -> str:
    """Returns what is shown at first as SVG, for places where scripts are off; empty without matplotlib."""
    if find_spec("matplotlib") is None:
        return ""
    import matplotlib
    from matplotlib.figure import Figure

    figure, content = Figure(figsize=panel_size(scene), layout="constrained"), io.StringIO()
    paint(figure.add_subplot(), scene)
    # No date and no random ids inside: the same scene gives the same text.
    with matplotlib.rc_context({"svg.hashsalt": "gflowexplainer", "svg.fonttype": "none"}):
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()[content.getvalue().index("<svg") :]


def paint(ax: Axes, scene: Scene, other: int | None = None, level: int = 1) -> None:
    """Draws the explanation, or the scores of the ``other``-th explainer, on ``ax``, without title and colour bar."""
    values, scores = scene.v, scene.q
    if other is not None:
        values, scores = scene.others[other]["p"], scene.others[other]["q"]
    if scene.kind == "sentence":
        _paint_sentence(ax, scene, values, bands=other is None)
    else:
        _paint_graph(ax, scene, np.array(values, dtype=float), np.array(scores, dtype=float), level, other is None)


def _paint_graph(ax: Axes, scene: Scene, values: np.ndarray, scores: np.ndarray, level: int, bands: bool) -> None:
    """Draws nodes and edges: those of the explanation large and labelled, the others faint; a ring is the explained.

    Of a molecule nodes are discs behind its structure.
    """
    from matplotlib.collections import LineCollection

    place, shown = np.stack([scene.x, np.negative(scene.y)], axis=1), np.array(scene.level) <= level
    ends = np.array(scene.ends, dtype=int).reshape(-1, 2)
    edges = np.flatnonzero(shown[ends].all(axis=1))
    molecule = scene.kind == "molecule"
    area = np.full(shown.size, _DISC**2) if molecule else np.array(AREAS)[scene.level]
    widths = np.full(len(ends), 0.65 * _DISC) if molecule else 0.8 + 3.2 * scores

    def lines(chosen: Any, **style: Any) -> None:
        ax.add_collection(LineCollection(list(place[ends[chosen]]), **style))

    if bands:
        width = _DISC + 7 if molecule else AREAS[0] ** 0.5 + 9
        for number, part in enumerate(scene.parts):
            inside = [k for k in edges if set(scene.ends[k]) <= set(part)]
            lines(inside, colors=PARTS[number % 4][0], linewidths=width, capstyle="round", zorder=-1, clip_on=False)
            spots: dict[str, Any] = {"s": width**2, "c": PARTS[number % 4][0], "linewidths": 0, "clip_on": False}
            ax.scatter(*place[part].T, zorder=-1, **spots)
            top = max(part, key=lambda slot: place[slot, 1], default=None)
            if top is not None:
                _write_number(ax, place[top], number, 0.5 * width + 3)
    truth = [k for k in scene.truth or () if k in set(edges.tolist())]
    if truth:
        # A dashed band under the edge, and a white one on it: what is left are dashes on both sides.
        lines(truth, colors=TRUTH, linewidths=widths[truth] + 6, linestyles=[(0, (0.9, 0.45))], zorder=0)
        lines(truth, colors="white", linewidths=widths[truth] + 3.2, zorder=0.1)
        around = np.unique(ends[truth])
        dashes: dict[str, Any] = {"c": "white", "edgecolors": TRUTH, "linewidths": 1.3, "linestyles": "--"}
        ax.scatter(place[around, 0], place[around, 1], s=(area[around] ** 0.5 + 6) ** 2, zorder=0.5, **dashes)
    drawn = edges[np.argsort(scores[edges], kind="stable")]
    if scene.most is not None and bands:  # a value is coloured by what nodes add; of edges that is not known
        lines(drawn[:0] if molecule else drawn, colors="#c3ccd5", linewidths=widths[drawn], zorder=1)
    else:
        drawn = drawn[scores[drawn] > 0] if molecule else drawn
        shades = ["#c3ccd5" if q <= 0 else colour(_DEEP * q if molecule else 0.25 + 0.75 * q) for q in scores[drawn]]
        lines(drawn, colors=shades, linewidths=widths[drawn], capstyle="round" if molecule else None, zorder=1)
    if len(scene.marked) == 2:  # the explained link is no edge that anything may be explained by
        ax.plot(*place[scene.marked].T, color="black", linewidth=1.4, linestyle=":", zorder=0.8)
    kinds = np.zeros(shown.size, dtype=int) if scene.kinds is None else np.array(scene.kinds)
    ring, core = np.isin(np.arange(shown.size), scene.marked), (np.array(scene.level) == 0) & bands
    for kind in np.unique(kinds):
        mine = np.flatnonzero((kinds == kind) & shown & ((values != 0) | ring | (not molecule)))
        outline = TYPES[kind % len(TYPES)] if scene.types else _OUTLINE
        look: dict[str, Any] = {
            "c": [colour(_DEEP * value if molecule else value) for value in values[mine]],
            "edgecolors": ["black" if marked else outline for marked in ring[mine]],
            "linewidths": np.where(ring[mine], 2.6, 1.8 if scene.types else 0.7),
            "marker": MARKERS[kind % len(MARKERS)],
        }
        if molecule:  # only atoms of the explanation are outlined
            look |= {"edgecolors": _INK, "linewidths": np.where(core[mine], 1.2, 0.0)}
        ax.scatter(place[mine, 0], place[mine, 1], s=area[mine], zorder=2, **look)
    if scene.types or len(scene.marked) == 2:
        _add_legend(ax, scene)
    _paint_strokes(ax, scene, lines)
    for k in edges:
        a, b = scene.ends[k]
        if scene.relations is not None and scene.level[a] == scene.level[b] == 0 and scene.relations[k]:
            back = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
            middle: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 1.5, "parse_math": False, "bbox": back}
            x, y = place[[a, b]].mean(axis=0)
            ax.text(x, y, _short(scene.relations[k], 24), fontsize=6.5, **middle)
    for slot in np.flatnonzero(shown) if not molecule else ():
        if scene.level[slot] < 2:
            label = str(scene.ids[slot]) if scene.labels is None else scene.labels[slot]
            _write(ax, label, place[slot], float(area[slot]) ** 0.5, values[slot], large=scene.level[slot] == 0)
    _frame(ax, place[shown], 0.12)


def _paint_strokes(ax: Axes, scene: Scene, lines: Any) -> None:
    """Draws the structure of a molecule as rdkit has drawn it; dotted are edges that are no bonds."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    codes = {"M": [Curve.MOVETO], "L": [Curve.LINETO], "Q": [Curve.CURVE3] * 2, "C": [Curve.CURVE4] * 3}
    for text, kind in scene.strokes:
        points: list[tuple[float, float]] = []
        commands: list[Any] = []
        for command, numbers in re.findall(r"([MLQCZ])([^MLQCZ]*)", text):
            found = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
            points += [(x, -y) for x, y in zip(found[::2], found[1::2], strict=True)] or points[-1:]
            commands += codes.get(command, [Curve.CLOSEPOLY])
        style: dict[str, Any] = {"facecolor": _INK, "linewidth": 0} if kind == "filled" else {"fill": False}
        style |= {"edgecolor": _INK, "linewidth": 1.3} if kind != "filled" else {}
        ax.add_patch(PathPatch(Curve(points, commands), linestyle=":" if kind == "dashed" else "-", zorder=3, **style))
    lines(scene.unbound, colors=_INK, linewidths=1.3, linestyles=":", zorder=3)


def _write_number(ax: Axes, place: np.ndarray, number: int, above: float) -> None:
    """Writes the number of a part above its highest node."""
    box = {"boxstyle": "circle,pad=0.25", "facecolor": PARTS[number % 4][1], "edgecolor": "none"}
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom", "bbox": box, "zorder": 4}
    ax.annotate(str(number + 1), tuple(place), (0.0, above), fontsize=8, color="white", **style)


def _add_legend(ax: Axes, scene: Scene) -> None:
    """Writes below the drawing which shape is which type, and what is explained."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"linestyle": "", "markerfacecolor": colour(0), "markersize": 8, "markeredgewidth": 1.8}
    entries = [
        Line2D([], [], marker=MARKERS[k % len(MARKERS)], markeredgecolor=TYPES[k % len(TYPES)], label=kind, **look)
        for k, kind in enumerate(scene.types)
    ]
    if len(scene.marked) == 2:
        look |= {"linestyle": ":", "color": "black", "markerfacecolor": "white"}
    if scene.marked:
        label = "explained link" if len(scene.marked) == 2 else "explained"
        entries.append(Line2D([], [], marker="o", markeredgecolor="black", label=label, **look))
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 4}
    for text in ax.legend(handles=entries, fontsize=8, frameon=False, **place).get_texts():
        text.set_parse_math(False)


def _write(ax: Axes, label: str, place: np.ndarray, width: float, value: float, *, large: bool) -> None:
    """Writes a label on its node, or below it where it is long; labels are the user's: a dollar starts no formula."""
    if len(label) <= 5:
        font = 0.5 * width * min(1.0, 3.0 / max(len(label), 1))
        middle: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 3, "parse_math": False}
        ax.text(place[0], place[1], label, fontsize=font, color=_ink(value), **middle)
    if len(label) <= 5 or not large:  # beside the explanation there is no room for long names
        return
    back = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    below: dict[str, Any] = {"xytext": (0, -0.62 * width), "textcoords": "offset points", "ha": "center", "va": "top"}
    ax.annotate(_short(label, 24), (place[0], place[1]), fontsize=8, zorder=5, parse_math=False, bbox=back, **below)


def _ink(value: float) -> str:
    """Returns the colour of a label that can be read on the colour of ``value``."""
    return "white" if abs(value) > 0.75 else _INK


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _frame(ax: Axes, place: np.ndarray, margin: float) -> None:
    """Makes room for nodes at ``place`` ``[n, 2]``, also where they lie on one line: its other side has some width."""
    low, high = place.min(axis=0), place.max(axis=0)
    room = np.maximum(high - low, _LEAST_SIDE * ((high - low).max() or 1.0))
    middle = (low + high) / 2
    ax.update_datalim([middle - room / 2, middle + room / 2])
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.margins(margin)
    ax.autoscale_view()


def lines_of_words(scene: Scene) -> list[tuple[float, int, float, str]]:
    """Breaks a sentence into lines of ``_LINE`` characters: for each word its left end, line, width and text."""
    words: list[tuple[float, int, float, str]] = []
    left, line = 0.0, 0
    for word in scene.labels or []:
        width = len(_short(word, 40)) + 1.2
        if left + width > _LINE and left > 0:
            left, line = 0.0, line + 1
        words.append((left, line, width, _short(word, 40)))
        left += width + 0.5
    return words


def _paint_sentence(ax: Axes, scene: Scene, values: Sequence[float], *, bands: bool) -> None:
    """Sets words in lines, each on a background of its probability; dashes underline the ground truth."""
    from matplotlib.patches import Rectangle

    words = lines_of_words(scene)
    truth = {slot for k in scene.truth or () for slot in scene.ends[k]}
    for slot, (left, line, width, text) in enumerate(words):
        value, ringed = values[slot], slot in scene.marked
        edge, thick = "black" if ringed else _OUTLINE if value else "none", 2.0 if ringed else 0.5
        part = next((number for number, nodes in enumerate(scene.parts) if bands and slot in nodes), None)
        if part is not None:
            edge, thick = PARTS[part % len(PARTS)][1], 2.0
            ax.text(left + width, -line + 0.3, str(part + 1), fontsize=6.5, color=edge, ha="right", va="bottom")
        style: dict[str, Any] = {"facecolor": colour(value) if value else "none", "edgecolor": edge, "linewidth": thick}
        ax.add_patch(Rectangle((left, -line - 0.3), width, 0.6, **style))
        place: dict[str, Any] = {"ha": "center", "va": "center", "family": "monospace", "parse_math": False}
        ax.text(left + width / 2, -line, text, fontsize=8.5, color=_ink(value), **place)
        if slot in truth:
            dashes: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (3, 1.5)), "linewidth": 1.6}
            ax.plot([left, left + width], [-line - 0.41] * 2, **dashes)
    ax.set_xlim(-0.5, _LINE + 0.5)
    ax.set_ylim(-words[-1][1] - 0.55, 0.45)
    ax.set_axis_off()
