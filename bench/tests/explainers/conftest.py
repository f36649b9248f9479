"""Subjects for the peers: a random graph whose computation graphs have surroundings, and a few random graphs."""

import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject
from gflowexplainer.testing import GraphModel, NodeModel, random_graph


@pytest.fixture
def random_nodes() -> Data:
    graph = random_graph(24, 0.03, seed=2)
    # A self loop, and an edge that has no way back.
    graph.edge_index = torch.cat([graph.edge_index, torch.tensor([[5, 0], [5, 20]])], dim=1)
    graph.y = torch.zeros(24, dtype=torch.long)
    return graph


@pytest.fixture
def node_subject(random_nodes: Data) -> Subject:
    benchmark = Benchmark.from_graphs([random_nodes], task="node", index=[0, 5, 12], num_classes=3)
    subject = Subject.of(NodeModel(), benchmark)
    assert subject.instances.surroundings is not None
    return subject


@pytest.fixture
def graph_subject() -> Subject:
    graphs = [random_graph(6 + 2 * seed, 0.2, seed=seed) for seed in range(4)]
    graphs[1].edge_index = torch.cat([graphs[1].edge_index, torch.tensor([[2], [2]])], dim=1)
    for graph in graphs:
        graph.y = torch.zeros(1, dtype=torch.long)
    return Subject.of(GraphModel(), Benchmark.from_graphs(graphs, task="graph", num_classes=2))


@pytest.fixture(params=["node", "graph"])
def either_subject(request: pytest.FixtureRequest) -> Subject:
    subject: Subject = request.getfixturevalue(f"{request.param}_subject")
    return subject
