"""Subjects for the peers: a random graph whose computation graphs have surroundings, and a few random graphs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject
from gflowbench.explainers.rg_policy import RGPolicy
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


@pytest.fixture(scope="session")
def subject() -> Callable[..., Subject]:
    """Makes a small subject of a task."""

    def make(task: str = "node") -> Subject:
        if task == "node":
            graph = random_graph(14, 0.15, seed=2)
            graph.y = torch.zeros(14, dtype=torch.long)
            return Subject.of(NodeModel(), Benchmark.from_graphs([graph], task="node", index=[0, 4, 9], num_classes=3))
        graphs = [random_graph(8, 0.2, seed=seed) for seed in range(4)]
        for graph in graphs:
            graph.y = torch.zeros(1, dtype=torch.long)
        return Subject.of(GraphModel(), Benchmark.from_graphs(graphs, task="graph", num_classes=2))

    return make


@pytest.fixture(scope="session")
def random_policy() -> Callable[..., RGPolicy]:
    """Makes a policy of RG-Explainer for a subject that prefers some nodes to others."""

    def make(about: Subject, **settings: Any) -> RGPolicy:
        torch.manual_seed(0)
        policy = RGPolicy(about.instances.x.size(1), hidden=8, **settings)
        torch.nn.init.normal_(policy.head.weight)
        torch.nn.init.normal_(policy.gate.weight)
        return policy.double()

    return make
