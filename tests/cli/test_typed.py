"""``explain`` of heterogeneous graphs, and of links, from files to JSON and a report."""

import json

import pytest

from gflowexplainer.sources import save_graphs, save_typed_graph
from gflowexplainer.testing import random_graph, typed_graph

NODE = ("explain", "--model", "gflowexplainer.testing:TypedNodeModel", "--data", "graph.safetensors")
LINK = ("explain", "--model", "gflowexplainer.testing:TypedLinkModel", "--data", "graph.safetensors")
QUICK = ("--quiet", "--max-nodes", "4", "--json")


@pytest.fixture
def graph(workspace):
    graph = typed_graph()
    save_typed_graph(workspace / "graph.safetensors", graph)
    return graph


def test_nodes_of_a_typed_file(workspace, graph, invoke):
    done = invoke(*NODE, "--node-type", "paper", "--index", "3", "--out", "run", "--summary", *QUICK)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["instances"]
    assert found["summary"]["sentences"]
    assert found["name"] == "paper 3"
    assert "paper 3" in found["subgraphs"][0]["nodes"]
    assert '"types":["author","paper","venue"]' in (workspace / "run" / "report.html").read_text()
    again = invoke(*NODE, "--node-type", "paper", "--index", "3", "--out", "run", *QUICK)
    assert json.loads(again.stdout)["instances"][0]["subgraphs"] == found["subgraphs"]
    other = invoke(*NODE, "--node-type", "paper", "--index", "4", "--out", "run", *QUICK)
    assert other.exit_code == 2
    assert "index: '3' there, '4' here" in " ".join(other.output.split())


def test_links_of_a_typed_file(workspace, graph, invoke):
    author = int(graph["author", "writes", "paper"].edge_index[0, 0])
    words = ("--edge-type", "author,likes,venue", "--edge-label-index", f"{author}:1,2:0")
    done = invoke(*LINK, *words, "--no-report", *QUICK)
    assert done.exit_code == 0, done.output
    first, second = json.loads(done.stdout)["instances"]
    assert (first["name"], second["name"]) == (f"link {author} - 1", "link 2 - 0")
    assert {f"author {author}", "venue 1"} <= set(first["subgraphs"][0]["nodes"])


def test_links_of_a_plain_file(workspace, invoke):
    save_graphs(workspace / "graph.safetensors", random_graph(14, 0.1, seed=1))
    words = ("--model", "gflowexplainer.testing:LinkModel", "--data", "graph.safetensors")
    done = invoke("explain", *words, "--edge-label-index", "0:4", *QUICK)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["instances"][0]["paths"][0]["nodes"][::2] == [0, 4]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--all", "--task-level", "node"), "--node-type"),
        (("--task-level", "edge"), "Which links?"),
        (("--edge-label-index", "0-4"), "pairs of node ids"),
        (("--edge-label-index", "0:4:5"), "pairs of node ids"),
        (("--index", "3", "--node-type", "book"), "node type"),
        (("--index", "999", "--node-type", "paper"), "the graph has"),
        (("--index", "3", "--edge-label-index", "0:4"), "exclude each other"),
    ],
)
def test_mistakes_get_one_line(graph, invoke, words, message):
    done = invoke(*NODE, *words)
    assert done.exit_code in (1, 2)
    assert message in done.output
    assert "Traceback" not in done.output
