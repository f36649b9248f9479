"""What types cost: one ring of blocks as a plain graph and with two types and five relations, 10^4 to 10^7 edges.

Both models have two layers; the typed one is PyG's ``to_hetero`` of the plain one, a convolution for each relation.
Each size is measured in processes of its own, in processor time of one thread: the first explanation of a graph, which
puts together what is kept, and then fitting and explaining, up to the ranked subgraphs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GraphSAGE, to_hetero

from benchmarks.large_graphs import BLOCK, CLASSES, WIDTH, readable, ring
from benchmarks.measuring import environment, results_folder, threads, write_json
from benchmarks.memory import in_a_process
from gflowexplainer import GFlowExplainer
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.files import write_text

SIZES = (10**4, 10**5, 10**6, 10**7)
LAYERS, FITTED, EXPLAINED = 2, 16, 32
KINDS = ("plain", "typed")
WORK = {"first": "first call (s)", "fit": "fit (ms a node)", "explain": "explain (ms a node)"}


def with_types(plain: Data) -> HeteroData:
    """Makes every other node an ``"a"`` and the rest a ``"b"``; edges between two ``"a"`` are of two relations."""
    kind = torch.arange(plain.num_nodes) % 2
    source, target = plain.edge_index
    graph = HeteroData()
    graph["a"].x, graph["b"].x = plain.x[::2], plain.x[1::2]
    for s, name in enumerate("ab"):
        for t, other in enumerate("ab"):
            chosen = (kind[source] == s) & (kind[target] == t)
            up = source < target if s == t == 0 else torch.ones_like(chosen)
            for relation, these in (("to", chosen & up), ("back", chosen & ~up)):
                if these.any():
                    graph[name, relation, other].edge_index = plain.edge_index[:, these] // 2
    return graph


def measure(edges: int, kind: str) -> dict[str, Any]:
    """Measures one size of one kind of graph in a process of its own: seconds of the first call, and a node."""
    graph: Data | HeteroData = ring(edges)
    torch.manual_seed(0)
    model: torch.nn.Module = GraphSAGE(WIDTH, 32, LAYERS, CLASSES).eval()
    nodes = (torch.arange(EXPLAINED) * (graph.num_nodes // BLOCK) // EXPLAINED) * BLOCK + 8
    asked: dict[str, Any] = {}
    if kind == "typed":
        graph, nodes, asked = with_types(graph), nodes // 2, {"node_type": "a"}
        model = _OfOneType(to_hetero(model, graph.metadata()))
    seconds = {}

    def timed(name: str, count: int, work: Callable[[], object]) -> None:
        began = time.thread_time()
        work()
        seconds[name] = (time.thread_time() - began) / count

    with threads(1):
        algorithm = GFlowExplainer(seed=0)
        timed("first", 1, lambda: algorithm.explain(model, graph, nodes[1:2] + BLOCK, **asked))
        timed("fit", FITTED, lambda: algorithm.fit(model, graph, nodes[::2], progress=False, **asked))
        timed("explain", EXPLAINED, lambda: [e.subgraphs for e in algorithm.explain(model, graph, nodes, **asked)])
    return {"edges": sum(e.size(1) for e in _edges(graph)), "seconds": seconds}


class _OfOneType(torch.nn.Module):
    """A typed model that predicts nodes of type ``"a"``."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x_dict: dict[str, Any], edge_index_dict: dict[tuple[str, str, str], Any]) -> Any:
        return self.model(x_dict, edge_index_dict)["a"]


def _edges(graph: Data | HeteroData) -> list[torch.Tensor]:
    return [graph.edge_index] if isinstance(graph, Data) else list(graph.edge_index_dict.values())


def tables(results: list[dict[str, Any]]) -> list[Table]:
    """Makes one table: a row a size, plain and typed beside each other, and the largest over the smallest last."""
    scale = {"first": 1.0, "fit": 1e3, "explain": 1e3}
    heads = ["directed edges", *(f"{label}, {kind}" for label in WORK.values() for kind in KINDS), "explain, ratio"]
    rows = []
    for result in results:
        values = [result[kind][name] * scale[name] for name in WORK for kind in KINDS]
        ratio = result["typed"]["explain"] / result["plain"]["explain"]
        rows.append((f"{result['edges']:,}", *map(readable, values), f"{ratio:.2f}"))
    growth = [results[-1][kind][name] / results[0][kind][name] for name in WORK for kind in KINDS]
    rows.append(("largest : smallest", *(f"{value:.2f}" for value in growth), ""))
    return [Table("Typed and plain graphs, one thread", tuple(heads), tuple(rows))]


def main(fast: bool = False) -> None:
    """Measures all sizes, and prints and stores the result."""
    sizes, repeats = (SIZES[:2], 1) if fast else (SIZES, 3)
    folder, results = results_folder("typed_graphs", fast), []
    rounds = [[{kind: measured(size, kind) for kind in KINDS} for size in sizes] for _ in range(repeats)]
    for number, _ in enumerate(sizes):
        found = [round_[number] for round_ in rounds]
        middle = {kind: {name: median(one[kind]["seconds"][name] for one in found) for name in WORK} for kind in KINDS}
        results.append({"edges": found[0]["plain"]["edges"], **middle})
    write_json(folder / "results.json", {"results": results, "repeats": repeats, **environment()})
    publish(folder)


def measured(edges: int, kind: str) -> dict[str, Any]:
    """Runs :func:`measure` in a new process."""
    return in_a_process("benchmarks.typed_graphs:measure", edges=edges, kind=kind)


def publish(folder: Path) -> None:
    """Prints and writes what is stored."""
    stored = json.loads((folder / "results.json").read_text())
    note = f"`{stored['command']}`, medians over {stored['repeats']} rounds"
    text = join(tables(stored["results"]), "markdown", [note])
    write_text(folder / "summary.md", text)
    print(text)
