"""``explain-typed`` from files to JSON."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gflowexplainer import TypedExplanation
from gflowexplainer.cli.application import app
from gflowexplainer.errors import DatasetError
from gflowexplainer.sources import load_typed_graph, save_graphs, save_typed_graph
from gflowexplainer.testing import random_graph, typed_graph


def said(*words):
    return CliRunner().invoke(app, ["explain-typed", *map(str, words), "--quiet", "--max-nodes", "4"])


def test_nodes_and_links_of_a_typed_file(tmp_path):
    graph = typed_graph()
    path = save_typed_graph(tmp_path / "graph.safetensors", graph)
    done = said("--model", "gflowexplainer.testing:TypedNodeModel", "--data", path, "--node-type", "paper",
                "--index", "3", "--out", tmp_path / "found")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found[0]["explained"] == ["paper", 3]
    stored = TypedExplanation.load(tmp_path / "found" / "explanation_0.safetensors")
    assert [list(node) for node in stored.subgraphs[0].nodes] == found[0]["subgraphs"][0]["nodes"]
    page = (tmp_path / "found" / "report.html").read_text()
    assert '"types":["author","paper","venue"]' in page
    again = said("--model", "gflowexplainer.testing:TypedNodeModel", "--data", path, "--node-type", "paper",
                 "--index", "4", "--out", tmp_path / "found")  # fmt: skip
    assert again.exit_code == 2
    assert "'index' differs" in " ".join(again.output.split())
    author = int(graph["author", "writes", "paper"].edge_index[0, 0])
    done = said("--model", "gflowexplainer.testing:TypedLinkModel", "--data", path, "--edge-type", "author,likes,venue",
                "--edge-label-index", f"{author}:1")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["explained"] == [["author", author], ["venue", 1]]


def test_links_of_a_plain_file(tmp_path):
    save_graphs(tmp_path / "graph.safetensors", random_graph(14, 0.1, seed=1))
    done = said("--model", "gflowexplainer.testing:LinkModel", "--data", tmp_path / "graph.safetensors",
                "--edge-label-index", "0:4")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["paths"][0]["nodes"][::2] == [0, 4]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "What to explain?"),
        (("--edge-label-index", "0-4"), "pairs of node ids"),
        (("--index", "3", "--node-type", "book"), "no node type 'book'"),
    ],
)
def test_mistakes_get_one_line(tmp_path, words, message):
    path = save_typed_graph(tmp_path / "graph.safetensors", typed_graph())
    done = said("--model", "gflowexplainer.testing:TypedNodeModel", "--data", path, *words)
    assert done.exit_code in (1, 2)
    assert message in done.output


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


def test_a_file_with_other_names_is_refused(tmp_path):
    np.savez(tmp_path / "graph.npz", x=np.zeros((2, 3)))
    with pytest.raises(DatasetError, match="NAME__TYPE"):
        load_typed_graph(tmp_path / "graph.npz")


@pytest.mark.parametrize("command", ["explain", "fit"])
def test_other_commands_name_the_one_for_typed_graphs(tmp_path, command):
    path = save_typed_graph(tmp_path / "graph.safetensors", typed_graph())
    words = ["--model", "gflowexplainer.testing:TypedNodeModel", "--data", str(path), "--index", "3"]
    done = CliRunner().invoke(app, [command, *words, "--out", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert "Use explain-typed" in " ".join(done.output.split())
