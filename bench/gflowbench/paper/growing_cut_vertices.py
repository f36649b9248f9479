"""Theorem 1 against searches from scratch while a graph grows, and the step-by-step picture of cut vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gflowbench.paper.experiment import Drawing, Experiment, Outcome, Results, Scope, Verdict
from gflowbench.paper.growth_times import (
    BATCH,
    BATCHED,
    NODES,
    PLAIN,
    SINGLE,
    TARJAN,
    grown_graph,
    time_growth,
)
from gflowbench.paper.line_figures import Line, Panel, draw_panels
from gflowbench.paper.plain_cut_vertices import GrowingCutVertices
from gflowbench.paper.steps import Measurement
from gflowexplainer.report.tables import NOT_THERE, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_NODES = 10
FAMILIES = {"sparse": 1.5 / NODES, "dense": 0.4}
"""Chance of an edge beside those of a random tree."""
SHOWN = (PAPER_NODES, 16, 32, NODES)
STEPS, TIMES = "ten nodes, step by step", "times, {}"


def plan(scope: Scope) -> list[Measurement]:
    """One growth of ten nodes to look at, and times on sparse and dense graphs."""
    graphs, rounds = scope.pick((40, 30), (10, 4))
    size: dict[str, Any] = {"nodes": NODES, "graphs": graphs, "rounds": rounds, "batch": BATCH}
    steps = [Measurement(STEPS, {"nodes": PAPER_NODES}, follow_growth)]
    for family, density in FAMILIES.items():
        settings = size | {"density": density}
        steps.append(Measurement(TIMES.format(family), settings, partial(time_growth, density, graphs, rounds)))
    return steps


def follow_growth() -> dict[str, Any]:
    """Grows the first graph of ten nodes in which cut vertices both come and go at least twice."""
    for seed in range(1000):
        adjacent = grown_graph(PAPER_NODES, 0.12, np.random.default_rng(seed))
        states = cuts_of(adjacent)
        moves = list(pairwise(states))
        if all(sum(bool(a - b) for a, b in pairs) > 1 for pairs in (moves, [(b, a) for a, b in moves])):
            break
    edges = [[int(a), int(b)] for a, b in np.argwhere(np.triu(adjacent))]
    return {"seed": seed, "edges": edges, "cuts": [sorted(cut) for cut in states]}


def cuts_of(adjacent: np.ndarray) -> list[set[int]]:
    """Returns the cut vertices after each node of a growth ``[n, n]``, by Theorem 1."""
    growing, found = GrowingCutVertices(), []
    for node, row in enumerate(adjacent):
        growing.add(np.flatnonzero(row[:node]).tolist())
        found.append(set(growing.groups))
    return found


def accumulated(times: Sequence[float]) -> list[float]:
    """Adds up the times of steps, beginning with the step to three nodes."""
    return np.cumsum(times).tolist()


def exponent(times: Sequence[float]) -> float:
    """Fits accumulated time as a power of the size, from the paper's ten nodes on: 1 is linear, 2 quadratic."""
    sizes = np.arange(3, len(times) + 3)
    large = sizes >= PAPER_NODES
    return float(np.polyfit(np.log(sizes[large]), np.log(np.array(accumulated(times))[large]), 1)[0])


def present(results: Results) -> Outcome:
    """Draws accumulated times and the picture, and judges what the paper says of them."""
    times = {family: results[TIMES.format(family)] for family in FAMILIES}
    tables = [_table(family, value["microseconds"]) for family, value in times.items()]
    graphs, rounds = results.scope.pick((40, 30), (10, 4))
    notes = [
        f"Processor time of one thread; each step is timed over {graphs} graphs (the batch: {BATCH}) and the best of "
        f"{rounds} rounds counts. The searches get their graphs built beforehand, at no cost to them.",
    ]
    drawings = [
        Drawing(
            "accumulated_time",
            "Accumulated time of finding the cut vertices after every added node, on sparse and dense random graphs, "
            "up to the paper's 10 nodes and up to 64. Theorem 1 in plain Python and Tarjan's search in plain Python "
            "compare the algorithms.",
            partial(_draw_times, times),
        ),
        Drawing(
            "step_by_step",
            "Cut vertices of a growing graph of 10 nodes: the black node is the one just added, pink squares are cut "
            "vertices, orange circles the other members, faint circles are not there yet.",
            partial(_draw_steps, results[STEPS]),
        ),
    ]
    return Outcome(tables, _verdicts(times), drawings, notes)


def _table(family: str, microseconds: Mapping[str, Sequence[float]]) -> Table:
    heads = ("method", *(f"{size} nodes" for size in SHOWN), "grows as", f"times Theorem 1 in a batch, {NODES} nodes")
    ours = accumulated(microseconds[BATCHED])[-1]
    rows = []
    for name, times in microseconds.items():
        total = accumulated(times)
        cells = [f"{total[size - 3]:.1f}" for size in SHOWN]
        ratio = NOT_THERE if name == BATCHED else f"{total[-1] / ours:.1f}"
        rows.append((name, *cells, f"n^{exponent(times):.2f}", ratio))
    return Table(f"Accumulated microseconds of one growing graph, {family} graphs", heads, tuple(rows))


def _verdicts(times: Mapping[str, Any]) -> list[Verdict]:
    states, cuts, wrong, elsewhere = (
        sum(value[what] for value in times.values()) for what in ("states", "cut_vertices", "differences", "elsewhere")
    )
    right = Verdict.judge(
        "Updating the cut vertex matrix by Theorem 1 finds the cut vertices of every state.",
        [wrong == 0],
        f"{wrong} of {states:,} states with {cuts:,} cut vertices differ from Tarjan's search.",
    )
    local = Verdict.judge(
        "Only the added node can make a vertex a cut vertex: one that it is joined to.",
        [elsewhere == 0],
        f"In {elsewhere} of {states:,} states a vertex that the new node is not joined to became a cut vertex.",
    )
    found = {family: value["microseconds"] for family, value in times.items()}
    total = {family: {name: accumulated(t) for name, t in value.items()} for family, value in found.items()}
    powers = {
        family: tuple(exponent(value[name]) for name in (PLAIN, TARJAN, BATCHED)) for family, value in found.items()
    }
    growth = Verdict.judge(
        "As the graph grows, accumulated time increases sharply with Tarjan's algorithm and linearly with Theorem 1.",
        # Half a power more than linear is no longer called linear.
        [part for plain, search, _ in powers.values() for part in (search > 1.5, plain < 1.5)],
        " ".join(
            f"On {family} graphs it grows as n^{search:.2f} with Tarjan's and n^{plain:.2f} with Theorem 1, in plain "
            f"Python (n^{batched:.2f} in the batch)."
            for family, (plain, search, batched) in powers.items()
        ),
    )
    at = {
        (family, size): value[TARJAN][size - 3] / value[PLAIN][size - 3]
        for family, value in total.items()
        for size in (PAPER_NODES, NODES)
    }
    engine = {family: value[TARJAN][-1] / value[BATCHED][-1] for family, value in total.items()}
    alone = {family: value[TARJAN][PAPER_NODES - 3] / value[SINGLE][PAPER_NODES - 3] for family, value in total.items()}
    faster = Verdict.judge(
        "Theorem 1 takes less time than searching each graph from scratch.",
        [ratio > 1 for ratio in (*at.values(), *engine.values(), *alone.values())],
        "In plain Python, Tarjan's takes "
        + ", ".join(f"{ratio:.1f} times as long ({family}, {size} nodes)" for (family, size), ratio in at.items())
        + f"; of the engine's batch of {BATCH}, "
        + " and ".join(f"{ratio:.0f} times ({family}, {NODES} nodes)" for family, ratio in engine.items())
        + "; but of the engine on a single graph, where calling torch costs more than a search, "
        + " and ".join(f"{ratio:.2f} times ({family}, {PAPER_NODES} nodes)" for family, ratio in alone.items())
        + ".",
    )
    return [right, local, growth, faster]


def _draw_times(times: Mapping[str, Any]) -> Figure:
    panels = []
    for last in (PAPER_NODES, NODES):
        for family, value in times.items():
            sizes = list(range(3, last + 1))
            lines = {
                name: Line(sizes, accumulated(found)[: len(sizes)]) for name, found in value["microseconds"].items()
            }
            title = f"{family} graphs, up to {last} nodes"
            panels.append(Panel(title, lines, "nodes of the growing graph", "accumulated time (µs)", log_y=True))
    return draw_panels(panels, columns=2, width=4.4, height=3.2)


def _draw_steps(growth: Mapping[str, Any]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from gflowexplainer.drawing.layout import layout

    edges = [tuple(edge) for edge in growth["edges"]]
    place = layout(PAPER_NODES, edges)
    figure = Figure(figsize=(11, 5.0), layout="constrained")
    axes = figure.subplots(2, 4, squeeze=False).ravel()
    kinds: dict[str, dict[str, Any]] = {
        "node just added": {"marker": "o", "markerfacecolor": "black", "markeredgecolor": "black"},
        "cut vertex": {"marker": "s", "markerfacecolor": "#f472b6", "markeredgecolor": "black"},
        "other member": {"marker": "o", "markerfacecolor": "#fdba74", "markeredgecolor": "#7a8794"},
        "not there yet": {"marker": "o", "markerfacecolor": "white", "markeredgecolor": "#d5dae0"},
    }
    for ax, size in zip(axes, range(3, PAPER_NODES + 1), strict=True):
        cuts = growth["cuts"][size - 1]
        for a, b in edges:
            there = max(a, b) < size
            ax.plot(*place[[a, b]].T, color="#55606b" if there else "#e8ebee", linewidth=1.5 if there else 1, zorder=1)
        for node, (x, y) in enumerate(place):
            kind = (
                "not there yet"
                if node >= size
                else "node just added"
                if node == size - 1
                else "cut vertex"
                if node in cuts
                else "other member"
            )
            ax.plot(x, y, linestyle="none", markersize=15, zorder=2, **kinds[kind])
            ink = {"node just added": "white", "not there yet": "#aab2bb"}.get(kind, "black")
            ax.text(x, y, str(node), ha="center", va="center", fontsize=8, color=ink, zorder=3)
        ax.set_title(f"{size} nodes: {len(cuts)} cut {'vertex' if len(cuts) == 1 else 'vertices'}", fontsize=10)
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.margins(0.15)
    handles = [Line2D([], [], linestyle="none", markersize=11, label=name, **look) for name, look in kinds.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10)
    return figure


EXPERIMENT = Experiment(
    name="cut-vertices",
    title="Cut vertices of growing graphs: Theorem 1 against searches from scratch",
    plan=plan,
    present=present,
)
