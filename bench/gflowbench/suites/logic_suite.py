"""The logic suite: its tasks by name, each made from a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gflowbench.datasets import Benchmark
from gflowbench.datasets.splits import cut_in_order
from gflowbench.datasets.task_truth import TaskTruth
from gflowbench.suites import logic, logic_nodes
from gflowbench.suites.logic_chains import chain
from gflowbench.suites.logic_sizes import sizes
from gflowbench.suites.pieces import Palette, palette_of
from gflowexplainer.errors import ConfigError, one_of

RULES: dict[str, Callable[[np.random.Generator, Palette, int], logic.Made]] = {
    "or": logic.either,
    "and-far": logic.both_far,
    "and-adjacent": logic.both_adjacent,
    "count": logic.count,
    "absence": logic.absence,
    "opposed": logic.opposed,
    "shapes": logic.shapes,
    "colour-pair": logic.colour_pair,
    "colour-ring": logic.colour_ring,
    "size": sizes,
    "sum-graph": logic.weighted_sum,
}
NODE_TASKS = {"distance": logic_nodes.distance, "chain": chain, "sum-node": logic_nodes.node_sum}
NAMES = (*RULES, *NODE_TASKS)
NUM_GRAPHS = {name: 2500 if name in RULES else 900 for name in NAMES}


def make_logic_task(name: str, seed: int, num_graphs: int | None = None) -> Benchmark:
    """Generates a logic task. The same seed gives the same graphs; no global random state is read or changed.

    Args:
        name: One of :data:`NAMES`.
        seed: Seed of everything random; its half chooses the motifs (:mod:`gflowbench.suites.halves`).
        num_graphs: Graphs, or for node tasks components of the one graph; by default :data:`NUM_GRAPHS`.
    """
    one_of("task", name, NAMES)
    number = NUM_GRAPHS[name] if num_graphs is None else num_graphs
    if number < 10:
        raise ConfigError(f"'num_graphs' must be at least 10, so that every split has some (got {number}).")
    if name in NODE_TASKS:
        return NODE_TASKS[name](seed, number)
    rng, palette = np.random.default_rng(seed), palette_of(seed)
    classes = len(palette.shapes) if name == "shapes" else 2
    graphs, truths = [], dict[int, TaskTruth]()
    for position in range(number):
        graph, truth = RULES[name](rng, palette, position % classes)
        graphs.append(graph)
        truths[position] = truth
    value = name == "sum-graph"
    parts = cut_in_order(number)
    return Benchmark(
        name=name,
        task="graph",
        mode="regression" if value else "multiclass_classification",
        graphs=graphs,
        truths=truths,
        splits=parts,
        index=parts["test"],
        source="generated",
        num_layers=3,
        num_classes=1 if value else classes,
        provenance=f"generated, seed {seed}, {number} graphs",
    )
