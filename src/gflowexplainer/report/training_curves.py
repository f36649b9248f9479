"""Curves of a training: thinned, scaled and cut into paths, so that page and figures draw the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

MOST_POINTS = 300
TITLES = {"loss": "loss", "log_score": "mean log-reward of samples", "size": "mean size of samples"}
_NOT_DRAWN = ("iteration", "seconds")


@dataclass(frozen=True, eq=False)
class Curve:
    """One quantity over the iterations.

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
    names = list(dict.fromkeys(name for record in records for name in record if name not in _NOT_DRAWN))
    curves = []
    for name in names:
        points = [
            (record.get("iteration", number), record[name])
            for number, record in enumerate(records)
            if _is_number(record.get(name)) and _is_number(record.get("iteration", number))
        ]
        if len(points) < 2:
            continue
        x, y = _thinned(np.array(points, dtype=float)).T
        logarithmic = bool(y.min() > 0 and y.max() > 50 * y.min())
        curves.append(Curve(TITLES.get(name, name.replace("_", " ")), x, y, logarithmic))
    return curves


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _thinned(points: np.ndarray) -> np.ndarray:
    """Averages neighbouring points until at most ``MOST_POINTS`` are left, shape ``[p, 2]``."""
    if len(points) <= MOST_POINTS:
        return points
    return np.array([part.mean(axis=0) for part in np.array_split(points, MOST_POINTS)])


def _unit(values: np.ndarray) -> np.ndarray:
    spread = np.ptp(values)
    return (values - values.min()) / spread if spread > 0 else np.full_like(values, 0.5)
