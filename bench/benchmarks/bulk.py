"""Several processes: explanations by one and by two workers, and what follows from it.

The graph is made of copies of a generated Tree-Cycles, so that neighbourhoods stay the same while it grows. Costs are
processor time, which depends little on what else the machine does. Rates by the clock do, so the load of the machine is
recorded beside them: where it exceeds the number of cores, two workers to one say nothing about how workers scale. The
last table is arithmetic and not a measurement: every core as fast as the one here, neighbourhoods like these, and an
index whose time grows with the edges as it did up to the largest one that was built.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from benchmarks.measuring import environment, results_folder, threads, write_json
from gflowbench.datasets import Benchmark, load
from gflowbench.models import train
from gflowexplainer import GFlowExplainer
from gflowexplainer.bulk import Source, explain_in_bulk
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.files import write_text

SEED = 0
EDGES, CORES = 1_000_000_000, 64
MACHINES = (1, 4, 16, 64)


def make_problem(epochs: int) -> tuple[Benchmark, nn.Module]:
    """Returns a generated Tree-Cycles and a GCN that was trained on it."""
    benchmark = load("tree-cycles", source="generated")
    return benchmark, train("gcn", benchmark, seed=SEED, progress=False, max_epochs=epochs).model


def copies(graph: Data, number: int) -> Data:
    """Puts so many copies of a graph side by side."""
    size = int(graph.num_nodes or 0)
    shift = size * torch.arange(number).repeat_interleave(graph.edge_index.size(1))
    return Data(
        x=graph.x.repeat(number, 1),
        edge_index=graph.edge_index.repeat(1, number) + shift,
        y=graph.y.repeat(number),
        motif_id=torch.where(
            graph.motif_id.repeat(number) < 0,
            -1,
            graph.motif_id.repeat(number)
            + (int(graph.motif_id.max()) + 1) * torch.arange(number).repeat_interleave(size),
        ),
    )


def time_index(graph: Data, sizes: list[int]) -> list[dict[str, float]]:
    """Times the index of graphs of about so many edges, and counts its bytes."""
    found = []
    for edges in sizes:
        large = copies(graph, max(1, round(edges / graph.edge_index.size(1))))
        began = time.thread_time()
        index = GraphIndex.build(large.edge_index, int(large.num_nodes or 0))
        spent = time.thread_time() - began
        held = sum(part.numel() * part.element_size() for part in (index.ptr, index.source, index.edge_id))
        found.append({"edges": index.num_edges, "seconds": spent, "bytes": held})
    return found


def nodes_around(model: nn.Module, graph: Data, index: GraphIndex, nodes: list[int]) -> float:
    """Returns the mean number of nodes of the computation graphs that are explained."""
    hops = Predictor(model).num_hops
    found = Instances.around_nodes(graph.x, graph.edge_index, nodes, hops, graph_index=index)
    return float(found.node_counts.float().mean())


def time_alone(folder: Path, model: nn.Module, graph: Data, index: GraphIndex, nodes: list[int]) -> float:
    """Returns the processor seconds of an explanation in one process, the first ones not counted."""
    algorithm = GFlowExplainer.load(folder)
    algorithm.explain(model, graph, nodes[:64], progress=False, graph_index=index)
    began = time.thread_time()
    algorithm.explain(model, graph, nodes, progress=False, graph_index=index)
    return (time.thread_time() - began) / len(nodes)


def time_bulk(
    folder: Path, source: Source, nodes: list[int], rounds: int, scratch: Path
) -> dict[int, list[dict[str, float]]]:
    """Explains in bulk by one and by two workers in turn."""
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for number in range(rounds):
        for workers, results in found.items():
            out = scratch / f"bulk-{workers}-{number}"
            began = time.perf_counter()
            done = explain_in_bulk(folder, source, nodes, out=out, workers=workers, part_size=64, progress=False)
            whole = time.perf_counter() - began
            size = sum(path.stat().st_size for path in (out / "explanations").iterdir())
            rates = {"second": done.explained / done.seconds, "processor": done.explained / done.processor_seconds}
            shares = {
                "at_work": done.busy_seconds / done.seconds / workers,
                "on_a_processor": done.processor_seconds / done.busy_seconds,
            }
            rest = {"start_seconds": whole - done.seconds, "bytes": size / done.instances}
            results.append(rates | shares | rest)
    return found


def worker_seconds(result: dict[str, Any]) -> float:
    """Returns the processor seconds that an explanation takes a worker, with making and writing its row."""
    return 1 / median(round_["processor"] for round_ in result["bulk"][1])


def on_paper(result: dict[str, Any]) -> dict[str, Any]:
    """Works out what a graph of a billion edges with such neighbourhoods takes, from the measured figures."""
    per_edge = result["index"][-1]
    instances = EDGES / result["edges_of_a_node"]
    core_seconds = instances * worker_seconds(result)
    return {
        "edges": EDGES,
        "instances": instances,
        "cores_of_a_machine": CORES,
        "index_minutes": EDGES * per_edge["seconds"] / per_edge["edges"] / 60,
        "gibibytes": {
            "edges": 16 * EDGES / 2**30,
            "index": EDGES * per_edge["bytes"] / per_edge["edges"] / 2**30,
            "features": 4 * result["width"] * instances / 2**30,
            "answers": result["bytes_of_an_explanation"] * instances / 2**30,
        },
        "fit_seconds": result["fit_seconds"],
        "core_hours": core_seconds / 3600,
        "hours": {str(number): core_seconds / 3600 / CORES / number for number in MACHINES},
    }


def tables(result: dict[str, Any]) -> list[Table]:
    """Shows everything."""
    rates, paper = result["bulk"], result["on_paper"]
    rows = [
        (
            f"{n} worker{'s' * (n > 1)}",
            f"{median(r['second'] for r in rates[n]):.0f}",
            f"{median(r['second'] for r in rates[n]) / median(r['second'] for r in rates[1]):.2f}",
            f"{1e3 / median(r['processor'] for r in rates[n]):.1f} ms",
            f"{median(r['at_work'] for r in rates[n]):.0%}",
            f"{median(r['on_a_processor'] for r in rates[n]):.0%}",
        )
        for n in rates
    ]
    heads = (
        "workers of one thread",
        "explanations a second of the clock",
        "to one worker",
        "processor time of one",
        "time at work",
        "of that, on a processor",
    )
    bulk = Table("Explanations in bulk, as measured", heads, tuple(rows))
    index = result["index"][-1]
    model = Table(
        "Cost model",
        ("what", "cost"),
        (
            ("fit to 64 instances, once", f"{result['fit_seconds']:.0f} s of one core"),
            ("index, once for a graph", f"{1e9 * index['seconds'] / index['edges']:.0f} ns an edge"),
            ("start of the workers", f"{median(r['start_seconds'] for r in rates[1]):.0f} s"),
            ("explanation by itself", f"{1e3 * result['seconds_of_an_explanation']:.1f} ms of one core"),
            ("explanation by a worker, its row written", f"{1e3 * worker_seconds(result):.1f} ms of one core"),
            ("its row in the file", f"{result['bytes_of_an_explanation']:.0f} bytes"),
        ),
    )
    memory = paper["gibibytes"]
    billion = Table(
        "On paper, not measured: every node of a graph of a billion edges",
        ("what", "amount if cores do not slow one another down"),
        (
            ("nodes to explain", f"{paper['instances'] / 1e6:.0f} million"),
            ("index, one core", f"{paper['index_minutes']:.0f} min"),
            (
                "edges, index and features in memory or mapped",
                f"{sum(memory[n] for n in ('edges', 'index', 'features')):.0f} GiB",
            ),
            ("explanations in files", f"{memory['answers']:.0f} GiB"),
            ("work", f"{paper['core_hours']:.0f} core hours"),
            *((f"{n} machine{'s' * (n != '1')} of {CORES} cores", f"{h:.1f} h") for n, h in paper["hours"].items()),
        ),
    )
    return [bulk, model, billion]


def main(fast: bool = False) -> None:
    """Measures, works out, prints and stores."""
    epochs, load_before = 10 if fast else 100, os.getloadavg()[0]
    with threads(1), tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        benchmark, model = make_problem(epochs)
        graph = copies(benchmark.graphs[0], 2 if fast else 50)
        index = GraphIndex.build(graph.edge_index, int(graph.num_nodes or 0))
        nodes = benchmark.motif_nodes()
        began = time.thread_time()
        algorithm = GFlowExplainer(seed=SEED)
        algorithm.fit(
            model, benchmark.graphs[0], nodes[torch.linspace(0, nodes.numel() - 1, 64).long()], progress=False
        )
        fit_seconds = time.thread_time() - began
        algorithm.save(scratch / "fitted")
        asked = torch.linspace(0, graph.num_nodes - 1, 256 if fast else 2048).long().tolist()
        alone = time_alone(scratch / "fitted", model, graph, index, asked[:1024])
        bulk = time_bulk(scratch / "fitted", Source(model, graph), asked, 1 if fast else 2, scratch)
        result: dict[str, Any] = {
            "graph": f"{graph.num_nodes} nodes, {graph.edge_index.size(1)} directed edges: copies of a Tree-Cycles",
            "edges_of_a_node": graph.edge_index.size(1) / int(graph.num_nodes or 1),
            "width": graph.x.size(1),
            "fit_seconds": fit_seconds,
            "seconds_of_an_explanation": alone,
            "bytes_of_an_explanation": bulk[1][0]["bytes"],
            "bulk": bulk,
            "two_workers_to_one": median(
                two["second"] / one["second"] for one, two in zip(bulk[1], bulk[2], strict=True)
            ),
            "index": time_index(benchmark.graphs[0], [100_000] if fast else [100_000, 1_000_000, 10_000_000]),
            "seed": SEED,
            "processors": os.cpu_count(),
            "load_average": {"before": load_before, "after": os.getloadavg()[0]},
            "nodes_of_a_computation_graph": nodes_around(model, graph, index, asked[:256]),
            **environment(),
        }
    write_results(result, results_folder("bulk", fast))


def write_results(result: dict[str, Any], folder: Path) -> None:
    """Works out what follows, and stores and prints everything."""
    result["on_paper"] = on_paper(result)
    write_json(folder / "bulk.json", result)
    load, cores = result["load_average"], result["processors"]
    notes = [
        f"Made by `{result['command']}` on {cores} CPU cores, with a load average of {load['before']:.1f} before and "
        f"{load['after']:.1f} after: beyond {cores}, processes wait for one another.",
        f"Computation graphs have {result['nodes_of_a_computation_graph']:.0f} nodes on average here; larger ones cost "
        "more.",
    ]
    write_text(folder / "summary.md", join(tables(result), "markdown", notes))
    print((folder / "summary.md").read_text())
