"""Rewards of the subgraph alone: cross-entropies by hand, regularisers against networkx."""

import re
from typing import Any

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.utils import subgraph

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import TINY, Target
from gflowexplainer.rewards import PredictionReward, RegularizedReward
from gflowexplainer.rewards.prediction import radius
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, cycle, house, random_graph

ROWS = [(0, [0]), (0, [0, 1, 4]), (1, [5 + 3, 5 + 2]), (1, [5 + 3, 5 + 0, 5 + 4, 5 + 1])]


def subgraphs_of(rows: list[tuple[int, list[int]]], width: int = 4) -> Subgraphs:
    members = [nodes + [-1] * (width - len(nodes)) for _, nodes in rows]
    return Subgraphs(torch.tensor([instance for instance, _ in rows]), torch.tensor(members))


@pytest.fixture
def instances() -> Instances:
    """The house, seen from node 0 and from node 3."""
    graph = house()
    return Instances.around_nodes(graph.x, graph.edge_index, [0, 3], 5)


@pytest.fixture
def alone() -> Tensor:
    """The model's answer on each subgraph of ``ROWS`` alone."""
    graph, model, answers = house(), NodeModel(), []
    for instance, nodes in ROWS:
        ids = sorted(node - 5 * instance for node in nodes)
        edge_index, _ = subgraph(torch.tensor(ids), graph.edge_index, relabel_nodes=True, num_nodes=5)
        with torch.no_grad():
            output = model(graph.x[ids], edge_index).softmax(dim=1)
        answers.append(output[ids.index([0, 3][instance])])
    return torch.stack(answers)


@pytest.fixture
def whole() -> Tensor:
    """The model's answer on the whole graph at the node of each subgraph of ``ROWS``."""
    graph = house()
    with torch.no_grad():
        return NodeModel()(graph.x, graph.edge_index).softmax(dim=1)[[0, 0, 3, 3]]


@pytest.mark.parametrize("expectation", ["whole", "subgraph", "label"])
def test_cross_entropies(expectation: str, instances: Instances, alone: Tensor, whole: Tensor) -> None:
    reward = PredictionReward(Predictor(NodeModel()), instances, expectation=expectation)
    wanted = {
        "whole": -nn.functional.cross_entropy(alone.log(), whole, reduction="none"),
        "subgraph": -nn.functional.cross_entropy(whole.log(), alone, reduction="none"),
        "label": -nn.functional.nll_loss(alone.log(), whole.argmax(dim=1), reduction="none"),
    }[expectation]
    torch.testing.assert_close(reward.log_score(subgraphs_of(ROWS)), wanted)


def test_the_default_is_the_mutual_information(instances: Instances) -> None:
    assert PredictionReward(Predictor(NodeModel()), instances).expectation == "whole"


def test_unknown_expectation(instances: Instances) -> None:
    with pytest.raises(ConfigError, match=re.escape("(got 'wholes'). Did you mean 'whole'?")):
        PredictionReward(Predictor(NodeModel()), instances, expectation="wholes")


@pytest.mark.parametrize("expectation", ["whole", "subgraph", "label"])
def test_impossible_classes_stay_finite(expectation: str, instances: Instances) -> None:
    class Sure(NodeModel):
        def forward(self, *arguments: Any, **more: Any) -> Tensor:
            return 1000 * super().forward(*arguments, **more)

    predictor = Predictor(Sure())
    target = Target.of(predictor, instances, torch.tensor([0, 0]))
    reward = PredictionReward(predictor, instances, expectation=expectation, target=target)
    score = reward.log_score(subgraphs_of(ROWS))
    assert score.isfinite().all()
    assert score.min() >= torch.tensor(TINY).log() - 1e-4


@pytest.mark.parametrize("removal", ["induced", "isolate"])
def test_graph_level(removal: str) -> None:
    graph, model = house(), GraphModel()
    instances = Instances.of_graphs([cycle(), graph])
    reward = PredictionReward(Predictor(model, level="graph"), instances, removal=removal, expectation="label")
    nodes = torch.tensor([0, 1, 4])
    edge_index, _ = subgraph(nodes, graph.edge_index, relabel_nodes=removal == "induced", num_nodes=5)
    x = graph.x[nodes] if removal == "induced" else graph.x
    with torch.no_grad():
        label = model(graph.x, graph.edge_index).argmax()
        wanted = model(x, edge_index).log_softmax(dim=1)[0, label]
    torch.testing.assert_close(reward.log_score(subgraphs_of([(1, [5, 9, 6])]))[0], wanted)


@pytest.mark.parametrize("expectation", ["whole", "subgraph", "label"])
def test_regression_is_a_gaussian_whatever_the_expectation(expectation: str) -> None:
    graph, model = house(), EdgeFeatureModel()
    graph.edge_attr = torch.rand(12, 2, generator=torch.Generator().manual_seed(0))
    instances = Instances.of_graphs([graph], arguments=["edge_attr"])
    predictor = Predictor(model, level="graph", mode="regression")
    reward = PredictionReward(predictor, instances, expectation=expectation)
    nodes = torch.tensor([1, 2, 3])
    edge_index, edge_attr = subgraph(nodes, graph.edge_index, graph.edge_attr, relabel_nodes=True, num_nodes=5)
    with torch.no_grad():
        value = model(graph.x, graph.edge_index, graph.edge_attr)
        unit = (value - model(graph.x, graph.edge_index[:, :0], graph.edge_attr[:0])).abs()
        wanted = -0.5 * ((model(graph.x[nodes], edge_index, edge_attr) - value) / unit).square()
    torch.testing.assert_close(reward.log_score(subgraphs_of([(0, [2, 1, 3])])), wanted[0])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10), st.integers(1, 6))
def test_radius_is_the_eccentricity_of_the_first_node(edges: list[tuple[int, int]], size: int) -> None:
    graph = nx.Graph((u, v) for u, v in edges if u != v and max(u, v) < size)
    graph.add_nodes_from(range(size))
    adjacent = torch.zeros(6, 6, dtype=torch.bool)
    for u, v in graph.edges:
        adjacent[u, v] = adjacent[v, u] = True
    reachable = graph.subgraph(nx.node_connected_component(graph, 0))
    assert radius(adjacent[None]).tolist() == [nx.eccentricity(reachable, 0)]


def test_radius_of_a_batch() -> None:
    path = torch.diag(torch.ones(3, dtype=torch.bool), 1)
    path = path | path.t()
    clique = ~torch.eye(4, dtype=torch.bool)
    assert radius(torch.stack([path, clique, torch.zeros_like(path)])).tolist() == [3, 1, 0]


@pytest.mark.parametrize("budget", [1, 256 << 20])
@pytest.mark.parametrize("weights", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.3, 0.2, 0.1)])
def test_regularisers(weights: tuple[float, float, float], budget: int) -> None:
    graph = random_graph(12, 0.2)
    # A self loop, a duplicate and an edge in one direction only: all directed edges count.
    extra = torch.tensor([[2, 2, 3], [2, 3, 7]])
    graph.edge_index = torch.cat([graph.edge_index, extra], dim=1)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [2, 3], 12)
    embedding = torch.randn(24, 4, generator=torch.Generator().manual_seed(0))
    predictor = Predictor(NodeModel(), memory_budget=budget)
    names = ("edge_weight", "distance_weight", "radius_weight")
    chosen = dict(zip(names, weights, strict=True))
    reward = RegularizedReward(predictor, instances, embedding=embedding, **chosen)
    rows = [(0, [2, 3, 4, 5]), (0, [2]), (1, [12 + 3, 12 + 7, 12 + 2]), (1, [12 + 3, 12 + 4])]
    bare = PredictionReward(predictor, instances, expectation="label").log_score(subgraphs_of(rows))

    simple = nx.Graph((u, v) for u, v in graph.edge_index.t().tolist() if u != v)
    for row, (instance, nodes) in enumerate(rows):
        ids = [node - 12 * instance for node in nodes]
        edges = subgraph(torch.tensor(ids), graph.edge_index, num_nodes=12)[0].size(1)
        distance = sum(float((embedding[v] - embedding[nodes[0]]).norm()) for v in nodes) / len(nodes)
        steps = nx.eccentricity(simple.subgraph(ids), ids[0])
        wanted = float(bare[row]) - weights[0] * edges - weights[1] * distance - weights[2] * steps
        assert reward.log_score(subgraphs_of(rows))[row].item() == pytest.approx(wanted, abs=1e-5)


def test_embedding_needs_one_row_a_node(instances: Instances) -> None:
    message = "'embedding' must have one row for each of the 10 nodes of the instances (got 5)."
    with pytest.raises(ConfigError, match=re.escape(message)):
        RegularizedReward(Predictor(NodeModel()), instances, embedding=torch.zeros(5, 2))
