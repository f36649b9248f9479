"""Bad inputs: settings, graphs, indices and targets that cannot be meant, and all other kinds of them beside these."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData

from faults.cases import INF, NAN, QUICK, Case, changed, explain
from faults.contents import bad_checkpoints, bad_files
from faults.counting import Count
from faults.models import bad_models
from faults.words import bad_words
from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house, random_graph


def bad_inputs() -> Count:
    """Tries them all."""
    count = Count("bad inputs")
    with tempfile.TemporaryDirectory() as home:
        before = Path.cwd()
        os.chdir(home)
        try:
            here = Path(home)
            for name, work, right in chain(
                _settings(), _graphs(), _indices(), bad_models(), bad_files(), bad_checkpoints(here), bad_words(here)
            ):
                count.judge(name, work, right)
        finally:
            os.chdir(before)
    return count


def _settings() -> Iterator[Case]:
    values: dict[str, list[Any]] = {
        "max_nodes": [0, -1, 1.5, "8", None, NAN, True, [3]],
        "min_nodes": [0, -3, 21, 2.5, "a"],
        "beta": [0, -1.0, NAN, INF, "two", None],
        "seed": [2**64, 0.5, "x", None],
        "learning_rate": [0, -1, NAN, INF, "fast"],
        "keep_probability": [1.5, 0, -0.1, NAN],
        "epsilon": [-0.1, 1.1, "x"],
        "reward": ["evidenc", "consensus", 3, None, ""],
        "removal": ["isolated", 1],
        "expectation": ["hole", None],
        "objective": ["balance", None],
        "measure": ["growt", 0],
        "policy": ["additiv", None],
        "hidden": [0, -4, 2.5],
        "num_samples": [0, -1, 1.5, "4", True, None],
        "num_hops": [-1, 1.5, "2", True, [2]],
        "certificate_limit": [0, "many"],
        "memory_budget": [0, -1, 1.5, "1GB"],
        "preset": ["papers", None, 3],
        "epochs": [0, 1.5],
        "batch_size": [0, -2, "all"],
        "no_such_setting": [1],
    }
    plain = GFlowExplainer()
    known = {*plain.settings.to_dict(), *vars(plain), "preset", "no_such_setting"}
    for name, wrong in values.items():
        for value in wrong if name in known else ():
            yield f"{name}={value!r}", lambda n=name, v=value: GFlowExplainer(**{n: v}), None
    yield (
        "preset and node_identities of a fit",
        lambda: GFlowExplainer(node_identities=True).fit(NodeModel(), random_graph(10), [0], progress=False),
        None,
    )
    yield (
        "max_nodes of a billion",
        lambda: GFlowExplainer(**{**QUICK, "max_nodes": 10**9}).explain(
            NodeModel(), random_graph(10), 3, progress=False
        ),
        lambda found: max(len(s) for s in found[0].subgraphs) <= 10,
    )  # type: ignore[index]
    yield "fit nothing and save", lambda: GFlowExplainer().save("folder"), None


def _graphs() -> Iterator[Case]:
    x = random_graph(10).x
    holes = x.clone()
    holes[3, 1] = NAN
    fields: dict[str, dict[str, Any]] = {
        "sparse x": {"x": x.to_sparse()},
        "x in CSR": {"x": x.to_sparse_csr()},
        "x without columns": {"x": torch.zeros(10, 0)},
        "x without rows": {"x": torch.zeros(0, 3)},
        "x of whole numbers": {"x": torch.ones(10, 3, dtype=torch.long)},
        "x of booleans": {"x": torch.ones(10, 3, dtype=torch.bool)},
        "complex x": {"x": x.to(torch.complex64)},
        "x of one dimension": {"x": x[:, 0]},
        "x of three dimensions": {"x": x[:, None]},
        "x as a list": {"x": x.tolist()},
        "x as an array": {"x": x.numpy()},
        "no x": {"x": None},
        "NaN in x": {"x": holes},
        "infinity in x": {"x": x / 0.0},
        "x of another width": {"x": torch.rand(10, 5)},
        "x in double precision": {"x": x.double()},
        "no edge_index": {"edge_index": None},
        "edge_index of floats": {"edge_index": torch.zeros(2, 4)},
        "edge_index of int32": {"edge_index": torch.zeros(2, 4, dtype=torch.int32)},
        "edge_index turned": {"edge_index": torch.zeros(4, 2, dtype=torch.long)},
        "edge_index of one dimension": {"edge_index": torch.zeros(4, dtype=torch.long)},
        "edge_index that names a node too far": {"edge_index": torch.tensor([[0, 10], [1, 0]])},
        "edge_index that names a negative node": {"edge_index": torch.tensor([[0, -1], [1, 0]])},
        "sparse edge_index": {"edge_index": torch.eye(10).to_sparse()},
        "edge_index as a list": {"edge_index": [[0, 1], [1, 0]]},
    }
    for name, change in fields.items():
        yield name, lambda c=change: explain(data=changed(**c)), None
    weights: dict[str, Any] = {
        "edge_weight too short": torch.ones(3),
        "edge_weight of text": "heavy",
        "edge_weight with NaN": torch.full((random_graph(10).edge_index.size(1),), NAN),
    }
    for name, value in weights.items():
        yield name, lambda v=value: explain(edge_weight=v), None
    yield (
        "a graph without edges",
        lambda: explain(data=Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))),
        (
            lambda found: found[0].subgraphs[0].nodes == (3,)  # type: ignore[index]
        ),
    )
    yield "no data", lambda: explain(data=[]), None
    yield "data of text", lambda: explain(data="graph"), None
    yield "data of numbers", lambda: explain(data=[1, 2]), None
    yield "HeteroData", lambda: explain(data=HeteroData()), None
    yield "an empty Data", lambda: explain(data=Data()), None
    yield "two graphs for a model of nodes", lambda: explain(
        data=[house(), cycle(5)], model_config={"mode": "multiclass_classification", "task_level": "node",
                                        "return_type": "raw"}), None  # fmt: skip
    yield "graphs of different width", lambda: explain(GraphModel(), [house(), house(width=5)], None), None
    yield "a batch_size", lambda: explain(batch_size=3), None
    yield "an argument that the model does not take", lambda: explain(no_such_argument=3), None
    yield "graph_index of another graph", lambda: explain(graph_index=_index_of(cycle(5))), None


def _index_of(data: Data) -> Any:
    from gflowexplainer.graphs.index import GraphIndex

    return GraphIndex.build(data.edge_index, int(data.num_nodes or 0))


def _indices() -> Iterator[Case]:
    for value in (10, -1, [3, 99], [], 1.5, "3", "a", [1.0], [[]], {"a": 1}, torch.tensor([True]), 1j, [NAN], 2**70):
        yield f"index={value!r}", lambda v=value: explain(index=v), None
    for value in (5, -1, [], "a", 1.5, [True], 2**70):
        yield f"index={value!r} of graphs", lambda v=value: explain(GraphModel(), [house(), cycle(5)], v), None
    for value in (7, -1, [0, 1], "a", 0.5, [[0, 1]], torch.rand(3, 2), {"a": 1}, NAN, [None]):
        yield f"target={value!r}", lambda v=value: explain(target=v), None
    configs: list[Any] = ["raw", 3, {"mode": "x", "task_level": "node", "return_type": "raw"}, {}, {"level": "node"}]
    configs += [{"mode": "regression", "task_level": "node", "return_type": "probs"}, [1, 2]]
    configs += [{"mode": "binary_classification", "task_level": "node", "return_type": "raw"}]
    for value in configs:
        yield f"model_config={value!r}", lambda v=value: explain(model_config=v), None
