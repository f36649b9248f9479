"""The drawing as one still SVG, for places where scripts are off."""

from __future__ import annotations

from xml.sax.saxutils import escape

import numpy as np

from gflowexplainer.drawing.colours import OUTLINE, PARTS, TRUTH, TYPES, colour, edge_colour, ink
from gflowexplainer.drawing.scene import Scene

RADII = (19.0, 9.5, 5.5)
_MARGIN = 46.0
_MOST_WIDTH = 640
CORNERS = (None, (4, 45.0), (4, 0.0), (3, 30.0), (6, 0.0), (3, 90.0), (5, 54.0), (8, 22.5))
"""Shapes of the types of nodes: number of corners, and the angle of the first."""
_FONT = 'font-family="system-ui, sans-serif" text-anchor="middle" dominant-baseline="central"'


def still(scene: Scene) -> str:
    """Draws what is shown at first: the explanation and what stands beside it, or the words of a sentence."""
    if scene.kind == "sentence":
        return _sentence(scene)
    scene = scene.up_to(1)
    place = scene.place * np.array([1.0, -1.0])
    low, high = place.min(axis=0) - _MARGIN, place.max(axis=0) + _MARGIN
    width, height = np.maximum(high - low, (300.0, 190.0))
    place = place - (low + high) / 2 + np.array([width, height]) / 2
    molecule = scene.kind == "molecule"
    parts = _bands(scene, place, 13.0 if molecule else RADII[0])
    for k in np.argsort(scene.edge_values, kind="stable"):
        a, b = place[scene.ends[k]]
        value = float(scene.edge_values[k])
        line = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
        if scene.truth is not None and scene.truth[k]:
            parts.append(f'<line {line} stroke="{TRUTH}" stroke-width="14" stroke-dasharray="4 3" opacity=".5"/>')
        if molecule and value > 0:
            parts.append(f'<line {line} stroke="{colour(value)}" stroke-width="13" stroke-linecap="round"/>')
        elif not molecule:
            wide = 1 + (5 if (scene.levels[scene.ends[k]] == 0).all() else 2) * value
            parts.append(f'<line {line} stroke="{edge_colour(value)}" stroke-width="{wide:.1f}"/>')
    if scene.link is not None:
        (ax, ay), (bx, by) = place[list(scene.link)]
        dots = 'stroke="black" stroke-width="2" stroke-dasharray="2 5"'
        parts.append(f'<line x1="{ax:.1f}" y1="{ay:.1f}" x2="{bx:.1f}" y2="{by:.1f}" {dots}/>')
    parts += _relations(scene, place)
    if molecule:
        parts += [_halo(place[slot], scene.values[slot]) for slot in np.flatnonzero(scene.values > 0)]
        assert scene.order is not None
        for (first, second), order in zip(scene.ends, scene.order, strict=True):
            parts += _bond(place[first], place[second], float(order))
    labels = scene.labels if scene.labels is not None else [str(node) for node in scene.nodes]
    for slot in np.argsort(-scene.levels, kind="stable"):
        parts += (
            _atom(scene, slot, place[slot], labels[slot]) if molecule else _node(scene, slot, place[slot], labels[slot])
        )
    if not molecule:
        more = scene.undrawn(1)
        for slot in np.flatnonzero((scene.levels == 0) & (more > 0)):
            x, y = place[slot]
            text = f"+{more[slot]} neighbour{'' if more[slot] == 1 else 's'}"
            below = y + (42 if len(labels[slot]) > 4 else 31)
            parts.append(f'<text x="{x:.1f}" y="{below:.1f}" font-size="10.5" fill="{OUTLINE}" {_FONT}>{text}</text>')
    parts += _numbers(scene, place, 13.0 if molecule else RADII[0])
    legend, deep = _legend(scene, float(width), float(height))
    parts += legend
    height += deep
    scale = min(1.0, _MOST_WIDTH / width)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width * scale:.0f}" '
        f'height="{height * scale:.0f}"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )


def _bands(scene: Scene, place: np.ndarray, radius: float) -> list[str]:
    """Lays a band of its own colour under each of several parts."""
    drawn = []
    for number, part in enumerate(scene.parts):
        tint, wide = PARTS[number % len(PARTS)][0], 2 * radius + 14
        for k in scene.inside_part(part):
            a, b = place[scene.ends[k]]
            drawn.append(
                f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="{tint}" '
                f'stroke-width="{wide}" stroke-linecap="round"/>'
            )
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{wide / 2}" fill="{tint}"/>' for x, y in place[part]]
    return drawn


def _numbers(scene: Scene, place: np.ndarray, radius: float) -> list[str]:
    """Puts the number of each of several parts above its uppermost node."""
    drawn = []
    for number, part in enumerate(scene.parts):
        if part.size:
            x, y = place[part[place[part, 1].argmin()]]
            dark = PARTS[number % len(PARTS)][1]
            drawn.append(
                f'<circle cx="{x:.1f}" cy="{y - radius - 13:.1f}" r="9" fill="{dark}"/><text x="{x:.1f}" '
                f'y="{y - radius - 13:.1f}" font-size="11.5" font-weight="600" fill="white" {_FONT}>{number + 1}</text>'
            )
    return drawn


def shape(kind: int, x: float, y: float, radius: float, look: str) -> str:
    """Draws a node of a type: a circle, or a figure with corners, in the order of the names of the types."""
    corners = CORNERS[kind % len(CORNERS)]
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {look}/>'
    angles = np.deg2rad(corners[1] + 360 * np.arange(corners[0]) / corners[0])
    points = np.stack([x + 1.15 * radius * np.cos(angles), y + 1.15 * radius * np.sin(angles)], axis=1)
    return f'<path d="M{"L".join(f"{px:.1f},{py:.1f}" for px, py in points)}Z" {look}/>'


def _relations(scene: Scene, place: np.ndarray) -> list[str]:
    """Writes on each edge of the explanation which relation it is."""
    parts = []
    for (first, second), name in zip(scene.ends, scene.relations or [""] * len(scene.ends), strict=True):
        if name and scene.levels[first] == scene.levels[second] == 0:
            x, y = (place[first] + place[second]) / 2
            text = escape(name if len(name) <= 24 else name[:23] + "…")
            around = 'paint-order="stroke" stroke="white" stroke-width="4" fill="#5b6672"'
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="10.5" {around} {_FONT}>{text}</text>')
    return parts


def _legend(scene: Scene, width: float, top: float) -> tuple[list[str], float]:
    """Says below the drawing which shape is which type; also tells how much room that takes."""
    parts, x, y = [], 16.0, top + 6
    for number, name in enumerate(scene.kinds):
        shown = name if len(name) <= 22 else name[:21] + "…"
        wide = 30 + 7.2 * len(shown)
        if x + wide > width and x > 16:
            x, y = 16.0, y + 22
        look = f'fill="{colour(0)}" stroke="{TYPES[number % len(TYPES)]}" stroke-width="2.5"'
        text = 'font-size="12" fill="#1f2933" font-family="system-ui, sans-serif" dominant-baseline="central"'
        parts.append(shape(number, x, y, 7.0, look))
        parts.append(f'<text x="{x + 14:.1f}" y="{y:.1f}" {text}>{escape(shown)}</text>')
        x += wide
    return parts, y + 18 - top if parts else 0.0


def _halo(place: np.ndarray, value: float) -> str:
    return f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="13" fill="{colour(value)}"/>'


def _atom(scene: Scene, slot: int, place: np.ndarray, label: str) -> list[str]:
    if not label:
        return []
    x, y, value = *place, scene.values[slot]
    back = colour(value) if value > 0 else "white"
    text = f'<text x="{x:.1f}" y="{y:.1f}" font-size="14" fill="{ink(value)}" {_FONT}>{escape(label)}</text>'
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" fill="{back}"/>', text]


def _bond(start: np.ndarray, end: np.ndarray, order: float) -> list[str]:
    along = end - start
    across = np.array([-along[1], along[0]]) / max(float(np.linalg.norm(along)), 1e-9) * 2.6
    shifts = {1.5: (-0.8, 0.8), 2.0: (-0.9, 0.9), 3.0: (-1.6, 0.0, 1.6)}.get(order, (0.0,))
    dashes = ' stroke-dasharray="1 4"' if order == 0 else ""
    return [
        f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="#1f2933" '
        f'stroke-width="1.8"{dashes}/>'
        for a, b in ((start + shift * across, end + shift * across) for shift in shifts)
    ]


def _node(scene: Scene, slot: int, place: np.ndarray, label: str) -> list[str]:
    x, y, value, large = *place, scene.values[slot], scene.levels[slot] == 0
    radius = RADII[int(scene.levels[slot])]
    kind = None if scene.types is None else scene.kinds.index(scene.types[slot])
    stroke, wide = (OUTLINE, 1.0) if kind is None else (TYPES[kind % len(TYPES)], 2.5)
    if slot in scene.marked:
        stroke, wide = "black", 3.5
    look = f'fill="{colour(value)}" stroke="{stroke}" stroke-width="{wide}" opacity="{1 if large else 0.75}"'
    parts = [shape(kind or 0, x, y, radius, look)]
    if large and len(label) > 4:
        shown = label if len(label) <= 22 else label[:21] + "…"
        parts.append(
            f'<text x="{x:.1f}" y="{y + radius + 11:.1f}" font-size="12.5" fill="#1f2933" {_FONT}>'
            f"{escape(shown)}</text>"
        )
    elif len(label) <= 4:
        size = min(radius * 0.78, radius * 2.6 / max(len(label), 1))
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}" fill="{ink(value)}" {_FONT}>{escape(label)}</text>'
        )
    return parts


def _sentence(scene: Scene) -> str:
    """Sets words in lines, each on a background of its probability."""
    parts, left, top = [], 8.0, 8.0
    for slot, word in enumerate(scene.labels or []):
        shown = word if len(word) <= 40 else word[:39] + "…"
        wide = 8.6 * len(shown) + 12
        if left + wide > _MOST_WIDTH - 8 and left > 8:
            left, top = 8.0, top + 34
        value = scene.values[slot]
        fill = colour(value) if value > 0 else "none"
        part = next((number for number, nodes in enumerate(scene.parts) if slot in nodes), None)
        stroke = OUTLINE if scene.levels[slot] == 0 else "none"
        stroke = stroke if part is None else PARTS[part % len(PARTS)][1]
        parts.append(
            f'<rect x="{left}" y="{top}" width="{wide:.0f}" height="26" rx="4" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="{1 if part is None else 2.5}"/>'
        )
        parts.append(
            f'<text x="{left + wide / 2:.1f}" y="{top + 13}" font-size="14" fill="{ink(value)}" '
            f'font-family="monospace" text-anchor="middle" dominant-baseline="central">{escape(shown)}</text>'
        )
        left += wide + 6
    height = top + 34
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_MOST_WIDTH} {height:.0f}" width="{_MOST_WIDTH}" '
        f'height="{height:.0f}"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )
