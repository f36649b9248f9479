"""Parts of explanations beside plain calls of the model on induced subgraphs."""

import networkx as nx
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer
from gflowexplainer.explanation.findings import Part, Parts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.random_parts import Neighbors, draw_random_parts
from gflowexplainer.steering import PRICE
from gflowexplainer.testing import GraphModel, NodeModel, random_graph

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class BothMarks(nn.Module):
    """Class 1 if a node of the first and one of the second kind are there."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(x.size(0), dtype=torch.long) if batch is None else batch
        number = int(batch.max()) + 1
        marks = torch.zeros(number, 2).index_add(0, batch, x[:, :2]).clamp(max=1)
        odds = 6 * (marks.sum(dim=1) - 1.5)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def marked_path(first: int, second: int, size: int = 16) -> Data:
    path = torch.tensor([[i, i + 1] for i in range(size - 1)]).t()
    x = torch.zeros(size, 3)
    x[:, 2] = 1
    x[first], x[second] = torch.tensor([1.0, 0, 0]), torch.tensor([0, 1.0, 0])
    return Data(x=x, edge_index=torch.cat([path, path.flip(0)], dim=1))


PAIRS = [(1, 12), (3, 14), (2, 10), (0, 9), (4, 13), (5, 15), (1, 9), (2, 13)]


@torch.no_grad()
def asked(model: nn.Module, graph: Data, nodes: set[int], root: int | None) -> Tensor:
    """What the model says of a graph of these nodes only."""
    kept = torch.tensor(sorted(nodes), dtype=torch.long)
    part = graph.subgraph(kept)
    said = model(part.x, part.edge_index).softmax(dim=1)
    return said[0 if root is None else sorted(nodes).index(root)]


def only_and_without(model, graph, nodes, root):
    rest = set(range(graph.num_nodes)) - set(nodes)
    rest |= set() if root is None else {root}
    return asked(model, graph, set(nodes), root), asked(model, graph, rest, root)


def value(model, graph, nodes, root, label):
    only, without = only_and_without(model, graph, nodes, root)
    return float(only[label] - without[label]) - PRICE * len(set(nodes) - {root})


def cases():
    for seed in range(4):
        graph = random_graph(14, 0.15, seed=seed)
        node_model, graph_model = NodeModel(seed=seed), GraphModel(seed=seed)
        for node, one in zip(
            (2, 9), GFlowExplainer(max_nodes=4).explain(node_model, graph, [2, 9], progress=False), strict=True
        ):
            yield node_model, graph, node, one
        yield graph_model, graph, None, GFlowExplainer(max_nodes=4).explain(graph_model, [graph], progress=False)[0]


@pytest.fixture(scope="module")
def explained_graphs():
    return list(cases())


def test_parts_are_worth_at_least_as_much_as_the_most_probable_subgraph(explained_graphs) -> None:
    better = 0
    for model, graph, root, one in explained_graphs:
        label = one.explained_class
        best = value(model, graph, one.subgraphs[0].nodes, root, label)
        found = value(model, graph, set(one.parts.nodes) | ({root} - {None}), root, label)
        assert found >= best - 1e-5
        better += found > best + 1e-3
    assert better > 0


def test_predictions_of_parts_are_those_of_plain_calls(explained_graphs) -> None:
    for model, graph, root, one in explained_graphs:
        whole = nx.Graph(graph.edge_index.t().tolist())
        for part in (*one.parts, one.parts):
            only, without = only_and_without(model, graph, part.nodes, root)
            torch.testing.assert_close(torch.tensor(part.prediction_only), only, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(torch.tensor(part.prediction_without), without, rtol=1e-4, atol=1e-5)
        for part in one.parts:
            assert nx.is_connected(whole.subgraph(part.nodes))


@pytest.fixture(scope="module")
def explained() -> list:
    graphs = [marked_path(*pair) for pair in PAIRS]
    explainer = GFlowExplainer(max_nodes=4, min_nodes=1, num_hops=1)
    explainer.fit(BothMarks(), graphs, model_config=CONFIG, progress=False)
    return list(explainer.explain(BothMarks(), graphs, model_config=CONFIG, progress=False))


def test_two_parts_far_apart_are_both_found(explained) -> None:
    for pair, one in zip(PAIRS, explained, strict=True):
        assert set(pair) <= set(one.parts.nodes)
        assert len(one.parts) == 2
        assert one.holds
        assert one.parts.preserved > 0.9 > one.parts.preserved_by_random


def test_a_class_that_nothing_holds_is_recognised() -> None:
    """Class 0 is the lack of a mark: every part of the graph holds it alike."""
    graphs = [marked_path(3, 8) for _ in range(6)]
    for number, graph in enumerate(graphs):
        graph.x[:, 0] = 0  # the first mark is missing
        graph.x[(number + 3) % 16, 1] = 1
    explainer = GFlowExplainer(max_nodes=4, num_hops=1)
    explainer.fit(BothMarks(), graphs, model_config=CONFIG, progress=False)
    for one in explainer.explain(BothMarks(), graphs, model_config=CONFIG, progress=False):
        assert not one.holds
        assert one.parts.preserved_by_random > 0.9
        assert "Nothing found holds" in one.parts.verdict()


@pytest.mark.parametrize(("size", "shown", "apart"), [(16, 5, True), (8, 5, False)])
def test_random_parts_lie_elsewhere_where_there_is_room(size, shown, apart) -> None:
    neighbors = Neighbors(Instances.of_graphs([marked_path(0, 4, size=size)]))
    nodes = frozenset(range(shown))
    drawn = draw_random_parts(neighbors, 0, [nodes], nodes, seed=0)
    assert len(set(drawn)) > 2
    for found in drawn:
        assert len(found) == shown
        assert max(found) - min(found) == shown - 1  # connected, on a path
        assert not apart or not found & nodes


def test_all_of_a_graph_is_compared_with_all_but_one_of_its_nodes() -> None:
    instances = Instances.of_graphs([marked_path(0, 4, size=5)])
    nodes = frozenset(range(5))
    drawn = draw_random_parts(Neighbors(instances), 0, [nodes], nodes, seed=0)
    assert {len(found) for found in drawn} == {4}


def test_parts_travel_with_a_stored_explanation(explained, tmp_path) -> None:
    explained[0].save(tmp_path / "one.safetensors")
    again = type(explained[0]).load(tmp_path / "one.safetensors")
    assert again.parts == explained[0].parts
    assert again.holds == explained[0].holds


def test_parts_are_a_sequence_of_plain_values() -> None:
    part = Part((1, 2), (0.1, 0.9), (0.8, 0.2))
    parts = Parts((part,), (0.1, 0.9), (0.8, 0.2), 0.9, None)
    assert list(parts) == [part]
    assert len(parts[0]) == 2
    assert parts.nodes == (1, 2)
    assert Parts.from_dict(parts.to_dict()) == parts
    assert "nothing else" in parts.verdict()


def test_a_node_has_one_part_that_is_connected_to_it() -> None:
    graph = random_graph(14, 0.2, seed=3)
    explanations = GFlowExplainer(max_nodes=5).explain(NodeModel(), graph, index=[0, 5], progress=False)
    whole = nx.Graph(graph.edge_index.t().tolist())
    for node, one in zip((0, 5), explanations, strict=True):
        assert len(one.parts) == 1
        assert node in one.parts[0].nodes
        assert nx.is_connected(whole.subgraph(one.parts[0].nodes))
