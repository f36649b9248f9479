"""Figures of curves that can be read without colour: lines differ by dashes and markers too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#000000", "linestyle": "-", "marker": "o"},
    {"color": "#c2410c", "linestyle": "--", "marker": "s"},
    {"color": "#0072b2", "linestyle": "-.", "marker": "^"},
    {"color": "#6b7280", "linestyle": ":", "marker": "D"},
    {"color": "#2a8f5b", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#a855a0", "linestyle": (0, (1, 1)), "marker": "P"},
    {"color": "#b8860b", "linestyle": (0, (7, 2)), "marker": "X"},
)
"""How the lines of a figure look, in turn; dark and light take turns too, for grey paper."""
_MARKS = 8


@dataclass(frozen=True)
class Line:
    """A curve, and its spread over seeds.

    Attributes:
        x: Shape ``[p]``.
        y: Means, shape ``[p]``.
        low, high: Borders of the band around it, shape ``[p]``; no band if ``None``.
    """

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    @classmethod
    def of_seeds(cls, x: Sequence[float], curves: Sequence[Sequence[float | None]]) -> Line:
        """Averages the curves of several seeds ``[seeds, p]``; the band reaches from the least to the largest."""
        values = np.array(curves, dtype=float)
        return cls(x, values.mean(axis=0).tolist(), values.min(axis=0).tolist(), values.max(axis=0).tolist())


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: What stands above.
        lines: Curves by name.
        x, y: What the axes are, with units.
        log_y: Whether the y-axis is logarithmic.
        from_zero: Whether the y-axis begins at 0.
    """

    title: str
    lines: Mapping[str, Line]
    x: str
    y: str
    log_y: bool = False
    from_zero: bool = False


def draw_panels(panels: Sequence[Panel], *, columns: int = 3, width: float = 3.7, height: float = 3.0) -> Figure:
    """Draws panels side by side, one legend for all of them below; a name looks the same in each."""
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(width * columns + 0.3, height * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    style = {name: STYLES[number % len(STYLES)] for number, name in enumerate(names)}
    for ax, panel in zip(axes, panels, strict=False):
        _paint(ax, panel, style)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    if len(names) > 1:
        handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        room = max(1, int((width * columns + 0.3) * 14 // max(map(len, names))) // 2)
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=min(len(names), room),
            frameon=False,
            fontsize=9,
            handlelength=3.5,
        )
    return figure


def _paint(ax: Axes, panel: Panel, style: Mapping[str, dict[str, Any]]) -> None:
    from matplotlib.ticker import MaxNLocator

    for name, line in panel.lines.items():
        look = style[name]
        ax.plot(
            line.x,
            line.y,
            label=name,
            linewidth=1.6,
            markersize=4.5,
            markevery=max(1, len(line.x) // _MARKS),
            **look,
        )
        if line.low is not None and line.high is not None:
            ax.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.15, linewidth=0)
    if panel.log_y:
        ax.set_yscale("log")
    elif panel.from_zero:
        ax.set_ylim(bottom=0)
    if all(x == int(x) for line in panel.lines.values() for x in line.x):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(panel.title, fontsize=10, parse_math=False)
    ax.set_xlabel(panel.x, fontsize=9)
    ax.set_ylabel(panel.y, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(which="major", color="#e2e5e9", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
