"""Pictures of a subgraph distribution: one layout, drawn by matplotlib or as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from gflowexplainer.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

_IMPROBABLE, _CERTAIN = (0xE6, 0xEB, 0xF0), (0xC2, 0x41, 0x0C)
OUTLINE, TRUTH = "#7a8794", "#1d4ed8"
"""Colours of the outline of a node, and of the dashes around the ground truth."""


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    Attributes:
        nodes: Ids of the nodes.
        values: Probability of each, shape ``[n]``.
        edges: Positions of both ends in ``nodes`` and the probability of each edge, the most probable last.
        ringed: Position of the explained node, if it is among them.
        title: What stands above.
        labels: What is written on each node; its id if not given.
        marked: Positions in ``edges`` of the ground truth, drawn with dashes around them.
        given: Where each node lies, shape ``[n, 2]``, if that is known already.
    """

    nodes: list[int]
    values: np.ndarray
    edges: list[tuple[int, int, float]]
    ringed: int | None
    title: str
    labels: Sequence[str] | None = None
    marked: Sequence[int] = ()
    given: np.ndarray | None = None

    @cached_property
    def place(self) -> np.ndarray:
        """Where each node lies, shape ``[n, 2]``."""
        return layout(len(self.nodes), [(i, j) for i, j, _ in self.edges]) if self.given is None else self.given


def draw(picture: Picture, path: str | Path | None, ax: Axes | None) -> Axes:
    """Draws with matplotlib, on ``ax`` or a figure of its own, and saves to ``path`` if there is one."""
    require_matplotlib()
    if ax is None and path is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6, 5), layout="constrained")[1]
    elif ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 5), layout="constrained").add_subplot()
    paint(ax, picture)
    ax.set_title(picture.title, fontsize=10)
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.colorbar(colour_scale(), ax=ax, label="probability", shrink=0.7)
    if path is not None:
        figure.savefig(path, dpi=150)
    return ax


def require_matplotlib() -> None:
    """Says what to install where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "Drawing needs matplotlib. Install it with 'pip install \"gflowexplainer[figures]\"'."
        ) from error


def colour_scale() -> ScalarMappable:
    """Returns the colours of probabilities, for a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    return ScalarMappable(Normalize(0, 1), LinearSegmentedColormap.from_list("probability", [colour(0), colour(1)]))


def paint(ax: Axes, picture: Picture) -> None:
    """Draws nodes and edges on ``ax``, without title and colour bar; the explained node has a ring."""
    from matplotlib.collections import LineCollection

    place, edges, count = picture.place, picture.edges, len(picture.nodes)
    lines = [(place[i], place[j]) for i, j, _ in edges]
    widths = [0.8 + 3.2 * value for *_, value in edges]
    size = float(np.clip(9000 / count, 90, 420))
    if picture.marked:
        # A dashed band under the edge, and a white one on it: what is left are dashes on both sides.
        band = [lines[k] for k in picture.marked]
        thick = [widths[k] for k in picture.marked]
        for colour_of_band, more, style in ((TRUTH, 6.0, (0, (1.2, 0.5))), ("white", 3.2, "solid")):
            ax.add_collection(
                LineCollection(
                    band, colors=colour_of_band, linewidths=[w + more for w in thick], linestyles=[style], zorder=0
                )
            )
        ends = sorted({end for k in picture.marked for end in edges[k][:2]})
        ax.scatter(
            place[ends, 0],
            place[ends, 1],
            s=(size**0.5 + 6) ** 2,
            c="white",
            edgecolors=TRUTH,
            linewidths=1.3,
            linestyles="--",
            zorder=0.5,
        )
    ax.add_collection(LineCollection(lines, colors=[edge_colour(v) for *_, v in edges], linewidths=widths, zorder=1))
    ax.scatter(
        place[:, 0],
        place[:, 1],
        s=size,
        c=[colour(value) for value in picture.values],
        edgecolors=["black" if i == picture.ringed else OUTLINE for i in range(count)],
        linewidths=[2.6 if i == picture.ringed else 0.7 for i in range(count)],
        zorder=2,
    )
    labels = picture.labels if picture.labels is not None else [str(node) for node in picture.nodes]
    for label, (x, y), value in zip(labels, place, picture.values, strict=True):
        font = 0.42 * size**0.5 * min(1.0, 3.4 / max(len(label), 1))
        # Labels are the user's: a dollar sign must not start a formula.
        ax.text(x, y, label, ha="center", va="center", fontsize=font, color=ink(value), zorder=3, parse_math=False)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.margins(0.08)


def svg(picture: Picture, width: int = 320, height: int = 260) -> str:
    """Draws a small SVG for a notebook; it holds numbers only, no text of the user's."""
    place = picture.place
    margin, spread = 16, np.ptp(place, axis=0)
    scale = min((width - 2 * margin) / max(spread[0], 1e-9), (height - 2 * margin) / max(spread[1], 1e-9), 60)
    dots = (place - place.min(axis=0) - spread / 2) * scale + np.array([width / 2, height / 2])
    parts = [
        f'<line x1="{dots[i][0]:.1f}" y1="{dots[i][1]:.1f}" x2="{dots[j][0]:.1f}" y2="{dots[j][1]:.1f}" '
        f'stroke="{edge_colour(value)}" stroke-width="{0.8 + 3 * value:.1f}"/>'
        for i, j, value in picture.edges
    ]
    for slot, (node, (x, y), value) in enumerate(zip(picture.nodes, dots, picture.values, strict=True)):
        ring = slot == picture.ringed
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" fill="{colour(value)}" '
            f'stroke="{"currentColor" if ring else OUTLINE}" stroke-width="{3 if ring else 1}">'
            f"<title>node {node}: {value:.3f}</title></circle>"
            f'<text x="{x:.1f}" y="{y + 3:.1f}" font-size="8" text-anchor="middle" fill="{ink(value)}">{node}</text>'
        )
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">{"".join(parts)}</svg>'


def ink(value: float) -> str:
    """Returns the colour of a label that can be read on the colour of ``value``."""
    return "white" if value > 0.75 else "#1f2933"


def colour(value: float) -> str:
    """Returns the colour of a probability."""
    share = min(max(float(value), 0.0), 1.0)
    mixed = (round(a + (b - a) * share) for a, b in zip(_IMPROBABLE, _CERTAIN, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def edge_colour(value: float) -> str:
    """Returns the colour of an edge: grey where it is improbable, as it must show on white."""
    return "#c3ccd5" if value <= 0 else colour(0.25 + 0.75 * value)


def layout(num_nodes: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """Places nodes so that distances on paper are those in the graph (stress majorisation), shape ``[n, 2]``."""
    if num_nodes == 1:
        return np.zeros((1, 2))
    ends = np.array(edges, dtype=int).reshape(-1, 2).T
    matrix = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(num_nodes, num_nodes)).tocsr()
    distance = shortest_path(matrix, directed=False, unweighted=True)
    far = distance[np.isfinite(distance)].max() + 1
    distance[~np.isfinite(distance)] = far
    np.fill_diagonal(distance, 1.0)
    weight = distance**-2.0
    np.fill_diagonal(weight, 0.0)
    # The pseudo-inverse of a Laplacian, at the price of an inverse.
    mean = 1 / num_nodes
    inverse = np.linalg.inv(np.diag(weight.sum(axis=1)) - weight + mean) - mean
    # Majorisation finds the nearest valley, in which a cycle may lie folded: the best of several beginnings is taken.
    tries = [_settle(begin, inverse, weight, distance) for begin in _beginnings(distance, far)]
    return min(tries, key=lambda found: found[0])[1]


def _beginnings(distance: np.ndarray, far: float) -> list[np.ndarray]:
    """Returns places to begin with: classical scaling of the distances, a near-circle, and two fixed random ones."""
    number = len(distance)
    squares = distance**2
    np.fill_diagonal(squares, 0.0)
    centre = np.eye(number) - 1 / number
    values, vectors = np.linalg.eigh(-0.5 * centre @ squares @ centre)
    scaled = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))
    angle = 2 * np.pi * np.arange(number) / number
    # Not quite a circle, on which symmetric graphs would stay folded onto themselves.
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + 0.1 * np.cos(3.7 * angle + 1))[:, None] * far / 2
    random = np.random.default_rng(0)
    scattered = [random.normal(size=(number, 2)) * far / 2 for _ in range(2 if number <= 100 else 0)]
    return [scaled + 1e-3 * circle, circle, *scattered]


def _settle(
    place: np.ndarray, inverse: np.ndarray, weight: np.ndarray, distance: np.ndarray
) -> tuple[float, np.ndarray]:
    """Moves nodes until the stress falls no more; gives the stress and where they lie."""
    pull = weight * distance
    for _ in range(150):
        ratio = pull / np.maximum(cdist(place, place), 1e-9)
        before, place = place, inverse @ (ratio.sum(axis=1)[:, None] * place - ratio @ place)
        if np.abs(place - before).max() < 1e-4:
            break
    return float((weight * (cdist(place, place) - distance) ** 2).sum()), place
