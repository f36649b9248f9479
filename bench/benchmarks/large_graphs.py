"""Time and memory an instance on graphs of 10^4 to 10^7 edges with equal neighbourhoods, beside PyG's way.

The graph is a ring of copies of one block, so that an explained node sees the same at every size. Features, edges and
index lie in files and are mapped into memory; each size is measured in processes of its own, all sizes once a round, in
processor time of one thread. Memory is by how much the process grows at most, pages of the files included.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import GCN
from torch_geometric.utils import k_hop_subgraph

from benchmarks.measuring import environment, results_folder, threads, write_json
from benchmarks.memory import growth, in_a_process
from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.report.tables import Table, join
from gflowexplainer.settings import Settings
from gflowexplainer.storage.files import write_text
from gflowexplainer.testing import random_graph

SIZES = (10**4, 10**5, 10**6, 10**7)
BLOCK, WIDTH, CLASSES, HOPS = 50, 16, 4, 3
FITTED, EXPLAINED = 16, 32
PEER_EPOCHS, PEER_UP_TO = 10, 10**6
OURS = ("cut", "fit", "explain")
LABELS = {
    "cut": "cut out",
    "fit": "fit",
    "explain": "explain",
    "k_hop_subgraph": "PyG k_hop_subgraph",
    "gnn_explainer": f"PyG GNNExplainer ({PEER_EPOCHS} epochs)",
}


def ring(edges: int) -> Data:
    """Joins copies of one random block of 50 nodes to a ring with about so many directed edges."""
    block = random_graph(BLOCK, 0.04, seed=0, width=WIDTH)
    link = torch.tensor([[0, BLOCK + BLOCK // 2], [BLOCK + BLOCK // 2, 0]])
    one = torch.cat([block.edge_index, link], dim=1)
    copies = edges // one.size(1)
    first = torch.arange(copies)[:, None] * BLOCK
    ends = [((part + first) % (copies * BLOCK)).flatten() for part in one]
    return Data(x=block.x.repeat(copies, 1), edge_index=torch.stack(ends))


def write_graph(folder: str, edges: int) -> dict[str, Any]:
    """Writes a graph and its index to files and says what that took; runs in a process of its own."""
    with threads(1):
        graph, place = ring(edges), Path(folder)
        for name in ("x", "edge_index"):
            np.save(place / f"{name}.npy", graph[name].numpy())
        began = time.thread_time()
        index = GraphIndex.build(graph.edge_index, graph.num_nodes)
        built = time.thread_time()
        index.save(place / "index.npy")
    size = (place / "index.npy").stat().st_size
    return {"nodes": graph.num_nodes, "edges": graph.num_edges, "index_seconds": built - began, "index_bytes": size}


def measure(folder: str, peer: bool) -> dict[str, Any]:
    """Measures one size in a process of its own: seconds and bytes an instance."""
    place = Path(folder)
    x, edge_index = (torch.from_numpy(np.load(place / f"{name}.npy", mmap_mode="c")) for name in ("x", "edge_index"))
    data, index = Data(x=x, edge_index=edge_index), GraphIndex.open(place / "index.npy")
    torch.manual_seed(0)
    model = GCN(WIDTH, 32, HOPS, CLASSES).eval()
    blocks = data.num_nodes // BLOCK
    nodes = (torch.arange(EXPLAINED) * blocks // EXPLAINED) * BLOCK + 7
    limit = Settings().max_graph_nodes
    found: dict[str, Any] = {"seconds": {}, "bytes": {}}

    def timed(name: str, count: int, work: Callable[[], object]) -> None:
        with growth(found["bytes"], name):
            began = time.thread_time()
            work()
            found["seconds"][name] = (time.thread_time() - began) / count
        found["bytes"][name] /= count

    with threads(1):
        # What is loaded or set up once for all is no cost of an instance.
        small = ring(20 * BLOCK * 4)
        warm = GFlowExplainer().fit(model, small, [7], progress=False)
        warm.explain(model, small, [7])
        algorithm = GFlowExplainer(seed=0)
        timed("cut", EXPLAINED, lambda: cut(data, nodes, index, limit))
        timed("fit", FITTED, lambda: algorithm.fit(model, data, nodes[::2], graph_index=index, progress=False))
        timed("explain", EXPLAINED, lambda: algorithm.explain(model, data, nodes, graph_index=index))
        timed("k_hop_subgraph", 2, lambda: [k_hop_subgraph(int(n), HOPS, edge_index) for n in nodes[:2]])
        if peer:
            timed("gnn_explainer", 1, lambda: gnn_explainer(model)(x, edge_index, index=int(nodes[1])))
    instances = cut(data, nodes, index, limit)
    outer = instances.surroundings or instances
    return found | {"nodes": instances.num_nodes / len(instances), "with_surroundings": outer.num_nodes / len(outer)}


def cut(data: Data, nodes: Tensor, index: GraphIndex, limit: int) -> Instances:
    """Cuts instances out as an explanation does."""
    return Instances.around_nodes(data.x, data.edge_index, nodes, HOPS, graph_index=index, limit=limit)


def gnn_explainer(model: torch.nn.Module) -> Explainer:
    """Makes the peer as PyG documents it: on the whole graph."""
    return Explainer(
        model,
        GNNExplainer(epochs=PEER_EPOCHS),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )


def middle(rounds: list[dict[str, Any]], what: str, name: str) -> float | None:
    """Takes the median over the rounds of one number; ``None`` where it was not measured."""
    values = [round_[what][name] for round_ in rounds if name in round_[what]]
    return median(values) if values else None


def readable(value: float) -> str:
    """Writes a number with three digits that count."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def tables(results: list[dict[str, Any]]) -> list[Table]:
    """Makes a table of times and one of memory, one row a size, with the ratio of the largest to the smallest last."""

    def table(
        title: str, what: str, scale: float, names: tuple[str, ...], extra: dict[str, Callable[..., str]]
    ) -> Table:
        rows = [
            (
                f"{result['edges']:,}",
                *(make(result) for make in extra.values()),
                *("-" if (v := result[what][name]) is None else readable(v * scale) for name in names),
            )
            for result in results
        ]
        last = ["largest : smallest", *("" for _ in extra)]
        for name in names:
            sizes = [result[what][name] for result in results if result[what][name] is not None]
            last.append(f"{sizes[-1] / sizes[0]:.2f}")  # of the sizes that were measured
        heads = ("directed edges", *extra, *(LABELS[name] for name in names))
        return Table(title, heads, (*rows, tuple(last)))

    index = {
        "index (s, once)": lambda r: readable(r["index_seconds"]),
        "index (MB)": lambda r: readable(r["index_bytes"] / 1e6),
    }
    return [
        table(
            "Milliseconds an instance, one thread", "seconds", 1e3, (*OURS, "k_hop_subgraph", "gnn_explainer"), index
        ),
        table("Peak memory an instance (MB)", "bytes", 1e-6, ("fit", "explain", "k_hop_subgraph", "gnn_explainer"), {}),
    ]


def draw(results: list[dict[str, Any]], folder: Path) -> None:
    """Draws time and memory an instance over the size of the graph."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from gflowexplainer.report.figures import save_figure

    styles = {
        "gnn_explainer": ("#9a9a9a", "s", "-"),
        "k_hop_subgraph": ("#d08a00", "^", "--"),
        "fit": ("#0072b2", "D", "-."),
        "explain": ("#000000", "o", "-"),
        "cut": ("#009e73", "v", ":"),
    }
    figure, panels = pyplot.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained")
    for axes, what, scale, label in (
        (panels[0], "seconds", 1e3, "processor time an instance (ms)"),
        (panels[1], "bytes", 1e-6, "peak memory an instance (MB)"),
    ):
        for name, (color, marker, line) in styles.items():
            if what == "bytes" and name == "cut":
                continue  # lies within what the process has free already
            points = [(r["edges"], r[what][name] * scale) for r in results if r[what][name] is not None]
            axes.plot(*zip(*points, strict=True), label=LABELS[name], color=color, marker=marker, linestyle=line)
        axes.set(xscale="log", yscale="log", xlabel="directed edges of the graph", ylabel=label)
        axes.grid(which="major", color="#dddddd", linewidth=0.7)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=len(styles))
    save_figure(figure, folder / "large_graphs")
    pyplot.close(figure)


def main(fast: bool = False) -> None:
    """Measures all sizes, and prints, stores and draws the result."""
    sizes, repeats = (SIZES[:3], 1) if fast else (SIZES, 3)
    folder, results = results_folder("large_graphs", fast), []
    with tempfile.TemporaryDirectory() as scratch:
        places = [Path(scratch) / str(size) for size in sizes]
        for size, place in zip(sizes, places, strict=True):
            place.mkdir()
            results.append(in_a_process("benchmarks.large_graphs:write_graph", folder=str(place), edges=size))
        rounds: list[list[dict[str, Any]]] = [[] for _ in sizes]
        for number in range(repeats):
            for size, place, found in zip(sizes, places, rounds, strict=True):
                peer = number == 0 and size <= PEER_UP_TO
                found.append(in_a_process("benchmarks.large_graphs:measure", folder=str(place), peer=peer))
    for result, found in zip(results, rounds, strict=True):
        for what in ("seconds", "bytes"):
            result[what] = {name: middle(found, what, name) for name in LABELS}
        result["instance"] = {name: found[0][name] for name in ("nodes", "with_surroundings")}
        result["rounds"] = found
    write_json(folder / "results.json", {"results": results, "repeats": repeats, **environment()})
    publish(folder)


def publish(folder: Path) -> None:
    """Prints, writes and draws what is stored."""
    stored = json.loads((folder / "results.json").read_text())
    results = stored["results"]
    notes = [
        f"`{stored['command']}`, medians over {stored['repeats']} rounds",
        f"An instance has {results[0]['instance']['nodes']:.0f} nodes.",
        f"GNNExplainer was run once, and not beyond {PEER_UP_TO:,} edges, to keep the benchmark short; its ratio is of "
        "the sizes that were run.",
    ]
    text = join(tables(results), "markdown", notes)
    write_text(folder / "summary.md", text)
    draw(results, folder)
    print(text)
