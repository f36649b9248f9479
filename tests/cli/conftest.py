"""A folder as a new user has it: a model in a file, its weights, graphs."""

import json
import sys

import pytest
import torch
from typer.testing import CliRunner

from gflowexplainer.cli.application import app
from gflowexplainer.sources import save_graphs
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house, random_graph

MODULE = """
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel

def build():
    return NodeModel(seed=1)

def graph_model():
    return GraphModel(seed=1)

def edge_model():
    return EdgeFeatureModel()

def sized(width):
    return NodeModel(width)

def nothing():
    return None

class Failing(NodeModel):
    def forward(self, x, edge_index):
        raise KeyError("speed")
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "400")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("my_models", None)
    (tmp_path / "my_models.py").write_text(MODULE)
    torch.save(NodeModel(seed=1).state_dict(), tmp_path / "node.pt")
    torch.save(GraphModel(seed=1).state_dict(), tmp_path / "graph.pt")
    graph = random_graph(12)
    save_graphs(tmp_path / "graph.safetensors", graph)
    save_graphs(tmp_path / "graphs.safetensors", [house(), cycle(6), cycle(5)])
    entry = {
        "nodes": ["a", "b", "<script>alert(1)</script>"],
        "edges": [[0, 1], [1, 2]],
        "features": [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
        "labels": [0, 1, 2],
    }
    (tmp_path / "graph.json").write_text(json.dumps(entry))
    yield tmp_path
    sys.modules.pop("my_models", None)


@pytest.fixture
def invoke():
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])
