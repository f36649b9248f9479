"""Hubs: what an explanation beside one takes, and what the bound on the nodes of a computation graph does.

First a neighbour of a hub of 10^3 to 10^6 neighbours is explained, alone and by default settings, in a process of its
own. Then, on a graph grown by preferential attachment, for several bounds: how far a prediction on
the kept nodes is from the true one, where they are kept by relevance and where the nearest are, and what it costs.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from benchmarks.large_graphs import gnn_explainer
from benchmarks.measuring import environment, results_folder, threads, write_json
from benchmarks.memory import growth, in_a_process
from gflowbench.datasets.preferential_attachment import preferential_attachment
from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs import neighborhoods
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.neighborhoods import DAMPING, reach
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.report.tables import Table, join
from gflowexplainer.settings import Settings
from gflowexplainer.storage.checkpoints import checksum
from gflowexplainer.storage.files import write_text

DEGREES = (10**3, 10**4, 10**5, 10**6)
BOUNDS = (125, 250, 500, 1000, 2000, 4000)
WIDTH, CLASSES, HOPS = 16, 4, 3
GROWN, ATTACHED, ASKED = 20_000, 4, 40
PEER_EPOCHS_LEFT_OUT_FROM = 10**6


def hub_graph(leaves: int) -> Data:
    """Makes a hub whose neighbours form a ring."""
    leaf = torch.arange(1, leaves + 1)
    ends = [torch.stack([torch.zeros_like(leaf), leaf]), torch.stack([leaf, leaf % leaves + 1])]
    edges = torch.cat(ends, dim=1)
    x = torch.randn(leaves + 1, WIDTH, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def make_model() -> torch.nn.Module:
    """Makes the explained model: three layers that see degrees, untrained, with outputs that are not all alike."""
    torch.manual_seed(0)
    return GCN(WIDTH, 32, HOPS, CLASSES).eval()


def beside_a_hub(leaves: int, peer: bool) -> dict[str, Any]:
    """Explains one neighbour of a hub in this process."""
    found: dict[str, Any] = {"neighbours": leaves}
    with threads(1):
        model, data = make_model(), hub_graph(leaves)
        index = GraphIndex.build(data.edge_index, leaves + 1)
        small = hub_graph(20)
        GFlowExplainer().explain(model, small, 1, progress=False)
        with growth(found, "bytes"):
            began = time.thread_time()
            (explanation,) = GFlowExplainer().explain(model, data, leaves // 2, graph_index=index, progress=False)
            found["seconds"] = time.thread_time() - began
        found["left_out"] = explanation.left_out
        if peer:
            with growth(found, "peer_bytes"):
                began = time.thread_time()
                gnn_explainer(model)(data.x, data.edge_index, index=leaves // 2)
                found["peer_seconds"] = time.thread_time() - began
    return found


def grown_graph() -> Data:
    """Grows a graph by preferential attachment, the same in every process."""
    pairs = preferential_attachment(GROWN, ATTACHED, np.random.default_rng(1))[0]
    edges = torch.from_numpy(pairs).t()
    x = torch.randn(GROWN, WIDTH, generator=torch.Generator().manual_seed(1))
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def cost_of(bound: int) -> dict[str, Any]:
    """Explains one node of the grown graph under a bound in this process."""
    found: dict[str, Any] = {}
    with threads(1):
        model, data = make_model(), grown_graph()
        found["graph"] = checksum({"x": data.x, "edge_index": data.edge_index})
        index = GraphIndex.build(data.edge_index, GROWN)
        GFlowExplainer().explain(model, hub_graph(20), 1, progress=False)
        algorithm = GFlowExplainer(max_graph_nodes=bound)
        with growth(found, "bytes"):
            began = time.thread_time()
            algorithm.explain(model, data, GROWN // 2, graph_index=index, progress=False)
            found["seconds"] = time.thread_time() - began
    return found


def nearest(*given: Any) -> Any:
    """Finds senders with a relevance that knows the distance only; ties are broken as for relevance."""
    sent = neighborhoods_senders(*given)
    return sent._replace(relevance=np.full_like(sent.relevance, DAMPING * given[2].min()))


neighborhoods_senders = neighborhoods._senders


def errors_of(bounds: tuple[int, ...]) -> dict[str, Any]:
    """Compares predictions on kept nodes with the true ones: mean total variation, and classes that change."""
    with threads(1), torch.no_grad():
        model, data = make_model(), grown_graph()
        index = GraphIndex.build(data.edge_index, GROWN)
        predictor = Predictor(model)
        nodes = torch.arange(ASKED) * (GROWN // ASKED)
        truth = model(data.x, data.edge_index)[nodes].softmax(dim=1)
        sizes = np.bincount(reach(index, np.arange(ASKED) * GROWN + nodes.numpy(), HOPS).key // GROWN)
        name = checksum({"x": data.x, "edge_index": data.edge_index})
        found: dict[str, Any] = {"graph": name, "nodes": float(sizes.mean()), "bounds": {}}
        for bound in bounds:
            entry = {}
            for name, senders in (("relevance", neighborhoods_senders), ("nearest", nearest)):
                with patch.object(neighborhoods, "_senders", senders):
                    instances = Instances.around_nodes(
                        data.x, data.edge_index, nodes, HOPS, graph_index=index, limit=bound
                    )
                with predictor.evaluating():
                    kept = predictor.whole(instances)
                changed = (kept.argmax(dim=1) != truth.argmax(dim=1)).double().mean()
                entry[name] = {"distance": float((kept - truth).abs().sum(1).mean() / 2), "changed": float(changed)}
            found["bounds"][str(bound)] = entry
    return found


def tables(hubs: list[dict[str, Any]], grown: dict[str, Any]) -> list[Table]:
    """Makes one table over hubs and one over bounds."""

    def shown(value: float | None, scale: float = 1.0) -> str:
        return "-" if value is None else f"{value * scale:.3g}"

    first = [
        (
            f"{hub['neighbours']:,}",
            f"{hub['left_out']:,}",
            shown(hub["seconds"]),
            shown(hub["bytes"], 1e-6),
            shown(hub.get("peer_seconds")),
            shown(hub.get("peer_bytes"), 1e-6),
        )
        for hub in hubs
    ]
    second = [
        (
            f"{int(bound):,}",
            shown(entry["relevance"]["distance"]),
            shown(entry["nearest"]["distance"]),
            shown(entry["relevance"]["changed"]),
            shown(entry["nearest"]["changed"]),
            shown(entry["seconds"]),
            shown(entry["bytes"], 1e-6),
        )
        for bound, entry in grown["bounds"].items()
    ]
    peer = "PyG GNNExplainer, 10 epochs"
    heads = ("neighbours of the hub", "left out", "explain (s)", "peak (MB)", f"{peer} (s)", "its peak (MB)")
    title = f"One neighbour of a hub, max_graph_nodes={Settings().max_graph_nodes}, one thread"
    bounds = ("max_graph_nodes", "distance, by relevance", "distance, nearest first", "class changes, by relevance")
    return [
        Table(title, heads, tuple(first)),
        Table(
            f"Bounds on computation graphs of {grown['nodes']:,.0f} nodes on average",
            (*bounds, "class changes, nearest first", "explain (s)", "peak (MB)"),
            tuple(second),
        ),
    ]


def main(fast: bool = False) -> None:
    """Measures hubs and bounds, and prints and stores the result."""
    folder: Path = results_folder("hubs", fast)
    degrees, bounds = (DEGREES[:2], BOUNDS[:2]) if fast else (DEGREES, BOUNDS)
    hubs = [
        in_a_process("benchmarks.hubs:beside_a_hub", leaves=degree, peer=degree < PEER_EPOCHS_LEFT_OUT_FROM)
        for degree in degrees
    ]
    grown = errors_of(bounds)
    for bound in bounds:
        cost = in_a_process("benchmarks.hubs:cost_of", bound=bound)
        if cost["graph"] != grown["graph"]:
            raise RuntimeError("The grown graph differs between processes, so cost and error do not belong together.")
        grown["bounds"][str(bound)] |= cost
    write_json(folder / "results.json", {"hubs": hubs, "grown": grown, **environment()})
    text = join(tables(hubs, grown), "markdown", [f"`{environment()['command']}`"])
    write_text(folder / "summary.md", text)
    print(text)
