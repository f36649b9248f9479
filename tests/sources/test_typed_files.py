"""Heterogeneous graphs in files: all formats hold the same graph, and what cannot be meant is refused."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from gflowexplainer.errors import DatasetError
from gflowexplainer.sources import load_typed_graph, save_typed_graph
from gflowexplainer.sources.typed_files import is_typed_file
from gflowexplainer.testing import typed_graph


def test_files_of_all_formats_hold_the_same_graph(tmp_path):
    graph = typed_graph()
    del graph["author"].x
    graph["author"].num_nodes = 8
    first = load_typed_graph(save_typed_graph(tmp_path / "graph.safetensors", graph))
    arrays = {f"edge_index__{'__'.join(key)}": value.numpy() for key, value in graph.edge_index_dict.items()}
    arrays |= {f"x__{key}": graph[key].x.numpy() for key in ("paper", "venue")} | {"num_nodes__author": np.array(8)}
    np.savez(tmp_path / "graph.npz", **arrays)
    nodes = {"paper": graph["paper"].x.tolist(), "venue": graph["venue"].x.tolist(), "author": 8}
    edges = {" ".join(key): value.t().tolist() for key, value in graph.edge_index_dict.items()}
    (tmp_path / "graph.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    for other in (load_typed_graph(tmp_path / "graph.npz"), load_typed_graph(tmp_path / "graph.json")):
        assert set(other.node_types) == set(first.node_types) == {"paper", "author", "venue"}
        assert other["author"].num_nodes == first["author"].num_nodes == 8
        assert torch.allclose(other["paper"].x, first["paper"].x)
        for key in graph.edge_types:
            assert torch.equal(other[key].edge_index, graph[key].edge_index)


GOOD = {"x__user": np.ones((3, 2)), "x__item": np.ones((4, 2)), "edge_index__user__buys__item": np.array([[0], [3]])}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": np.zeros((2, 3))}, "NAME__TYPE"),
        ({"edge_index__user__buys__item": np.zeros((3, 2), dtype=np.int64)}, r"whole numbers \[2, E\]"),
        ({"edge_index__user__buys__item": np.array([[0.0], [1.9]])}, "whole numbers"),
        ({"edge_index__user__buys__item": np.array([[0], [9]])}, "names node 9, but 'item' has 4 nodes"),
        ({"edge_index__user__buys__item": np.array([[-1], [0]])}, "names node -1"),
        ({"edge_index__user__buys__thing": np.array([[0], [0]])}, "joins 'thing', of which there are no nodes"),
        ({"edge_idx__user__likes__item": np.array([[0], [0]])}, "'edge_index' of user likes item .* is missing"),
        ({"xx__shop": np.ones((3, 2))}, "neither 'x__shop' nor 'num_nodes__shop'"),
        ({"x__user": np.ones(3)}, r"\[num_nodes, width\]"),
        ({"num_nodes__shop": np.array(-3)}, "number of nodes"),
        ({"num_nodes__shop": np.array(2.5)}, "number of nodes"),
        ({"num_nodes__shop": np.array(10**15)}, "more than memory holds"),
        ({"edge_attr__user__buys__item": np.ones((7, 1))}, "7 rows for 1 edges"),
    ],
)
def test_arrays_that_cannot_be_meant(tmp_path, change, said):
    np.savez(tmp_path / "graph.npz", **GOOD)
    load_typed_graph(tmp_path / "graph.npz")
    np.savez(tmp_path / "graph.npz", **{**GOOD, **change})
    with pytest.raises(DatasetError, match=said):
        load_typed_graph(tmp_path / "graph.npz")


NODES = {"user": 3, "item": [[1.0], [0.5]]}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"nodes": NODES, "edges": {"user buys item": [[0, 1.9]]}}, "whole numbers"),
        ({"nodes": NODES, "edges": {"user buys item": [[0, 1, 1]]}}, "pairs of ids"),
        ({"nodes": NODES, "edges": {"user buys item": [0, 1]}}, "list of lists"),
        ({"nodes": NODES, "edges": {"user item": [[0, 1]]}}, "NAME__SOURCE__RELATION__TARGET"),
        ({"nodes": NODES, "edges": {"user buys item": [[0, 1]]}, "edgs": {}}, "Did you mean 'edges'"),
        ({"nodes": {**NODES, "user": True}, "edges": {"user buys item": [[0, 1]]}}, "number of nodes"),
        ({"nodes": {**NODES, "user": -1}, "edges": {"user buys item": [[0, 1]]}}, "number of nodes"),
        ({"nodes": {**NODES, "user": 10**30}, "edges": {"user buys item": [[0, 1]]}}, "number of nodes"),
        ({"nodes": {}, "edges": {}}, "no types or no relations"),
        ([], "must hold 'nodes'"),
    ],
)
def test_json_that_cannot_be_meant(tmp_path, entry, said):
    (tmp_path / "graph.json").write_text(json.dumps(entry))
    with pytest.raises(DatasetError, match=said):
        load_typed_graph(tmp_path / "graph.json")


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".json"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"[" * 100_000])
def test_empty_and_damaged_files(tmp_path, ending, content):
    path = tmp_path / f"graph{ending}"
    path.write_bytes(content)
    for read in (load_typed_graph, is_typed_file):
        with pytest.raises(DatasetError):
            read(path)


FULL = """
import resource, sys
from gflowexplainer.errors import CheckpointError
from gflowexplainer.sources import save_typed_graph
from gflowexplainer.testing import typed_graph
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    save_typed_graph(sys.argv[1], typed_graph())
except CheckpointError as error:
    print(error)
"""


def test_a_full_disk_is_told(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "graph.safetensors")],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    assert "could not be written: File too large" in done.stdout, done.stderr
    assert not list(tmp_path.iterdir())
