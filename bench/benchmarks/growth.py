"""How the cost of an explanation grows: with instances, the bound on their size, features and samples; by the class.

A fitted ``GFlowExplainer`` explains nodes of a ring of copies of one block, so that all see the same. One thing is
changed at a time. Each call is timed to the masks of all explanations, as a sparse block; the first call on a graph is
not counted, and neither is the fit. Seconds are those of the clock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from benchmarks.large_graphs import BLOCK, CLASSES, HOPS, WIDTH, readable, ring
from benchmarks.measuring import environment, interleaved, results_folder, threads, write_json
from gflowexplainer import GFlowExplainer
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.files import write_text

INSTANCES = (1, 10, 100, 1_000, 10_000, 100_000)
BOUNDS = (4, 8, 16, 32)
FEATURES = (1, 16, 1_433, 50_000)
SAMPLES = (1, 64)
USUAL = 64
"""Instances of a call where something else is changed."""
FITTED, ROUNDS, THREADS = 16, 3, 2
MANY = 100_000
"""Instances from which on a call is timed once."""
BLOCKS = 10_000
"""Blocks of the largest graph; more instances than that see the same ones again."""
NODE = 7
"""The node of each block that is explained."""


def graph_of(blocks: int, width: int = WIDTH) -> Data:
    """Makes a ring of so many blocks whose nodes have features of some width."""
    data = ring(blocks * 200)
    if width == WIDTH:
        return data
    torch.manual_seed(0)
    block = torch.rand(BLOCK, width)
    return Data(x=block.repeat(data.num_nodes // BLOCK, 1), edge_index=data.edge_index)


def _graph_for(instances: Sequence[int]) -> Data:
    return graph_of(min(max(64, *instances), BLOCKS))


def fitted(data: Data, updates: int, **settings: Any) -> tuple[GFlowExplainer, torch.nn.Module]:
    """Fits the class to some blocks of a graph, and gives the GNN too."""
    torch.manual_seed(0)
    model = GCN(data.num_features, 32, HOPS, CLASSES).eval()
    explainer = GFlowExplainer(seed=0, max_updates=updates, **settings)
    return explainer.fit(model, data, _nodes(data, FITTED), progress=False), model


def _nodes(data: Data, count: int) -> torch.Tensor:
    """Names so many nodes of a graph, each alike, from different blocks as long as there are any."""
    blocks = data.num_nodes // BLOCK
    return (torch.arange(count) % blocks) * BLOCK + NODE


def _call(explainer: GFlowExplainer, model: torch.nn.Module, data: Data, count: int) -> Callable[[], None]:
    nodes = _nodes(data, count)

    def call() -> None:
        found = explainer.explain(model, data, nodes, progress=False)
        assert found.node_mask.size(0) == found.edge_mask.size(0) == count

    return call


def measure(fast: bool) -> dict[str, dict[str, list[float]]]:
    """Returns the seconds of each round of every call, by what was changed and its value."""
    updates, rounds = (2, 1) if fast else (50, ROUNDS)
    instances = INSTANCES[:3] if fast else INSTANCES
    data = _graph_for(instances)
    explainer, model = fitted(data, updates)
    found: dict[str, dict[str, list[float]]] = {}

    def timed(what: str, calls: dict[str, Callable[[], None]]) -> None:
        found[what] = interleaved(calls, rounds)

    timed("instances", {f"{count:,}": _call(explainer, model, data, count) for count in instances if count < MANY})
    many = {f"{count:,}": _call(explainer, model, data, count) for count in instances if count >= MANY}
    found["instances"].update(interleaved(many, 1, warm=True))
    several: dict[str, Callable[[], None]] = {}
    for count in SAMPLES:
        own, gnn = fitted(data, updates, num_samples=count)
        several[f"{count}"] = _call(own, gnn, data, USUAL)
    timed("samples", several)
    bounds: dict[str, Callable[[], None]] = {}
    for bound in BOUNDS[:2] if fast else BOUNDS:
        own, gnn = fitted(data, updates, max_nodes=bound)
        bounds[f"{bound}"] = _call(own, gnn, data, USUAL)
    timed("max_nodes", bounds)
    for width in FEATURES[:3] if fast else FEATURES:
        # One at a time: fifty thousand columns take their room.
        wide = graph_of(8, width)
        own, gnn = fitted(wide, updates)
        calls = {f"{width:,}": _call(own, gnn, wide, USUAL), f"{width:,}, one": _call(own, gnn, wide, 1)}
        found.setdefault("features", {}).update(interleaved(calls, rounds))
    return found


def _count(what: str, value: str) -> int:
    """Says how many instances a call had."""
    if what == "instances":
        return int(value.replace(",", ""))
    return 1 if value.endswith("one") else USUAL


def tables(stored: dict[str, Any]) -> list[Table]:
    """Makes one table of each thing that was changed."""
    made = []
    for what, calls in stored["seconds"].items():
        rows = []
        for value, seconds in calls.items():
            count = _count(what, value)
            whole, each = median(seconds), median(seconds) / count
            rows.append((value, f"{count:,}", readable(1e3 * whole), readable(1e3 * each)))
        title = f"Cost by {what.replace('_', ' ')} ({stored['device']}, {stored['threads']} threads)"
        made.append(Table(title, (what, "explanations", "ms a call", "ms each"), tuple(rows)))
    return made


def publish(folder: Path) -> None:
    """Writes the page from what is stored and prints it."""
    stored = json.loads((folder / "results.json").read_text())
    note = (
        f"`{stored['command']}`, {stored['date']}, {stored['cores']} cores, load {stored['load'][0]:.1f} before and "
        f"{stored['load'][1]:.1f} after, {stored['nodes']:,} nodes of a GCN of {HOPS} layers."
    )
    text = join(tables(stored), "markdown", [note])
    write_text(folder / "summary.md", text)
    print(text)


def main(fast: bool = False) -> None:
    """Times everything, and stores and prints it."""
    folder, before = results_folder("growth", fast), os.getloadavg()[0]
    with threads(THREADS):
        seconds = measure(fast)
        kept = environment()
    result = {"seconds": seconds, "cores": os.cpu_count(), "load": [before, os.getloadavg()[0]], **kept}
    result["nodes"] = _graph_for(INSTANCES[:3] if fast else INSTANCES).num_nodes
    write_json(folder / "results.json", result)
    publish(folder)
