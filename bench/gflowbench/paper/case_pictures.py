"""Pictures of single explanations: marked subgraphs, molecules and sentences, that can be read without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gflowexplainer.drawing.layout import layout
from gflowexplainer.drawing.painting import TRUTH, colour, colour_scale, paint
from gflowexplainer.drawing.scene import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS: dict[str, dict[str, Any]] = {
    "explained node": {"c": "#f472b6", "marker": "D", "edgecolors": "black", "linewidths": 1.4},
    "chosen, in the motif": {"c": "#2a8f5b", "marker": "o", "edgecolors": "black", "linewidths": 0.8},
    "chosen, not in the motif": {"c": "#f59e0b", "marker": "s", "edgecolors": "black", "linewidths": 0.8},
    "in the motif, not chosen": {"c": "white", "marker": "o", "edgecolors": "#2a8f5b", "linewidths": 1.4},
    "neither": {"c": "#d6dbe1", "marker": ".", "edgecolors": "none"},
}
"""How nodes look; in grey they differ by shape."""


def draw_subgraphs(cases: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draws one column a dataset and one row an explainer; an instance has the same layout in both."""
    from matplotlib.figure import Figure

    names = list(next(iter(cases.values()))["found"])
    columns = min(3, len(cases))
    bands = -(-len(cases) // columns)
    rows = len(names) * bands
    figure = Figure(figsize=(3.2 * columns, 2.7 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        ax.set_axis_off()
    for number, (title, case) in enumerate(cases.items()):
        band, column = divmod(number, columns)
        place = layout(len(case["nodes"]), [(i, j) for i, j in case["edges"]])
        for row, name in enumerate(names):
            _paint(axes[band * len(names) + row, column], case, name, place, f"{title}: {name}")
    handles = [axes[0, 0].scatter([], [], s=70, label=label, **look) for label, look in KINDS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _paint(ax: Axes, case: Mapping[str, Any], name: str, place: np.ndarray, title: str) -> None:
    from matplotlib.collections import LineCollection

    chosen, motif = np.array(case["found"][name]), np.array(case["motif"])
    ends = np.array(case["edges"], dtype=int).reshape(-1, 2)
    inside, own = chosen[ends].all(axis=1), motif[ends].all(axis=1)
    for mask, style in (
        (~inside & ~own, {"colors": "#d6dbe1", "linewidths": 0.8}),
        (~inside & own, {"colors": "#2a8f5b", "linewidths": 1.2, "linestyles": "--"}),
        (inside, {"colors": "#1f2933", "linewidths": 2.2}),
    ):
        ax.add_collection(LineCollection(list(place[ends[mask]]), zorder=1, **style))
    center = np.zeros(len(chosen), dtype=bool)
    if case["center"] is not None:
        center[case["center"]] = True
    masks = (center, chosen & motif & ~center, chosen & ~motif & ~center, ~chosen & motif & ~center)
    rest = ~np.any(masks, axis=0)
    for mask, look in zip((*masks, rest), KINDS.values(), strict=True):
        ax.scatter(place[mask, 0], place[mask, 1], s=90, zorder=2, **look)
    ax.set_title(title, fontsize=9)
    ax.set_aspect("equal")
    ax.margins(0.12)


def draw_molecules(cases: Sequence[Mapping[str, Any]], other: str) -> Figure:
    """Draws one row a molecule: subgraphs of ours, and the other's edges; dashes mark the ground truth."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    names = [*cases[0]["nodes"], other]
    figure = Figure(figsize=(4.0 * len(names), 3.4 * len(cases) + 0.5), layout="constrained")
    axes = figure.subplots(len(cases), len(names), squeeze=False)
    for row, case in zip(axes, cases, strict=True):
        for ax, name in zip(row, names, strict=True):
            paint(ax, _molecule(case, name if name != other else names[0], other), 0 if name == other else None)
            ax.set_title(f"{case['group']}, molecule {case['index']}\n{name}", fontsize=10)
    entries = [
        Line2D([], [], color=colour(1.0), linewidth=8, label="chosen"),
        Line2D([], [], color=TRUTH, linestyle=(0, (3, 1.5)), linewidth=1.6, label="ground truth"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _molecule(case: Mapping[str, Any], name: str, other: str) -> Scene:
    import torch

    from gflowexplainer.drawing.molecules import BOND, read_molecule, smiles_of

    ends = np.array(case["edges"], dtype=int).reshape(-1, 2)
    symbols, count = list(case["symbols"]), len(case["symbols"])
    read = read_molecule(smiles_of(symbols, torch.from_numpy(ends.T.copy()), case["orders"]), count)
    plain = isinstance(read, str)
    place = BOND * layout(count, [(i, j) for i, j in ends.tolist()]) if isinstance(read, str) else read.place
    chosen, best = np.array(case["nodes"][name], dtype=float), np.array(case["best"], dtype=float)
    scores = np.zeros(count)
    np.maximum.at(scores, ends, best[:, None])
    return Scene(
        kind="graph" if plain else "molecule",
        ids=list(range(count)),
        x=place[:, 0].tolist(),
        y=place[:, 1].tolist(),
        p=chosen.tolist(),
        v=chosen.tolist(),
        level=[1] * count,
        names=symbols,
        ends=ends.tolist(),
        q=chosen[ends].min(axis=1).tolist(),
        labels=symbols if plain else None,
        strokes=[] if isinstance(read, str) else read.strokes,
        truth=np.flatnonzero(case["truth"]).tolist(),
        others=[{"name": other, "q": best.tolist(), "p": scores.tolist(), "slots": []}],
    )


def draw_sentences(cases: Sequence[Mapping[str, Any]]) -> Figure:
    """Sets the words of each sentence twice: the most probable subgraph, and the probability of each word."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.2, 1.55 * 2 * len(cases) + 0.3), layout="constrained")
    axes = figure.subplots(2 * len(cases), 1, squeeze=False).ravel()
    for number, case in enumerate(cases):
        head = f"sentence {number + 1}, negative with probability {case['negative']:.2f}"
        for row, (values, title) in enumerate(
            (
                (case["chosen"], f"{head}: most probable subgraph ({case['share']:.2f})"),
                (case["probability"], f"{head}: probability of each word"),
            )
        ):
            ax = axes[2 * number + row]
            paint(ax, _sentence(case["words"], [float(value) for value in values]))
            ax.set_title(title, fontsize=9)
    bar = figure.colorbar(colour_scale(), ax=list(axes), shrink=0.7, aspect=30)
    bar.set_label("probability", fontsize=9)
    return figure


def _sentence(words: Sequence[str], values: list[float]) -> Scene:
    place = [float(number) for number in range(len(words))]
    return Scene(
        kind="sentence",
        ids=list(range(len(words))),
        x=place,
        y=[0.0] * len(words),
        p=values,
        v=values,
        level=[0] * len(words),
        names=list(words),
        ends=[],
        q=[],
        labels=list(words),
    )
