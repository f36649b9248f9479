"""Parts of explanations, and whether they hold, on models whose truth is known."""

import networkx as nx
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer
from gflowexplainer.explanation.parts import Part, Parts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.parts import _is_better, _RandomParts, find_parts
from gflowexplainer.inference.preservation import preservation_of
from gflowexplainer.inference.random_parts import Neighbors, draw_random_parts
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.factory import prepare_reward
from gflowexplainer.settings import Settings
from gflowexplainer.testing import NodeModel, random_graph

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


def inputs_of(model: nn.Module, graphs: list[Data]) -> TaskInputs:
    return TaskInputs.of(Predictor(model, level="graph", num_hops=1), Instances.of_graphs(graphs))


PAIRS = [(1, 12), (3, 14), (2, 10), (0, 9), (4, 13), (5, 15), (1, 9), (2, 13)]


@pytest.fixture(scope="module")
def explained() -> list:
    graphs = [marked_path(*pair) for pair in PAIRS]
    explainer = GFlowExplainer(seed=0, max_nodes=4, max_updates=10, min_nodes=1, num_hops=1)
    explainer.fit(BothMarks(), graphs, model_config=CONFIG, progress=False)
    return list(explainer.explain(BothMarks(), graphs, model_config=CONFIG, progress=False))


def test_two_parts_far_apart_are_both_found(explained) -> None:
    for pair, one in zip(PAIRS, explained, strict=True):
        assert set(pair) <= set(one.parts.nodes)
        assert len(one.parts) == 2
        assert len(one.parts.nodes) <= 6
        assert one.holds
        assert one.parts.preserved > 0.9 > one.parts.preserved_by_random


class WeightedMarks(nn.Module):
    """Class 1 if the weights in the first column add up to more than 28."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(x.size(0), dtype=torch.long) if batch is None else batch
        odds = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x[:, 0]) - 28
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def test_what_is_needed_one_by_one_is_shown_with_what_is_worth_nearly_as_much() -> None:
    """Three nodes of 10 are needed and hold; those of 4 and 3 are far above all others, which are worth nothing."""
    graphs = []
    for places in ([3, 4, 5, 6, 7], [8, 9, 10, 11, 12]):
        graph = marked_path(2, 11)
        graph.x[:, 0] = 0
        graph.x[places, 0] = torch.tensor([10.0, 10, 10, 4, 3])
        graphs.append(graph)
    explainer = GFlowExplainer(seed=0, max_nodes=4, max_updates=2, num_hops=1)
    explainer.fit(WeightedMarks(), graphs, model_config=CONFIG, progress=False)
    found = explainer.explain(WeightedMarks(), graphs, model_config=CONFIG, progress=False)
    assert [sorted(one.parts.nodes) for one in found] == [[3, 4, 5, 6, 7], [8, 9, 10, 11, 12]]


class SumOfMarks(nn.Module):
    """The value is what the first column adds up to."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(x.size(0), dtype=torch.long) if batch is None else batch
        return torch.zeros(int(batch.max()) + 1, 1).index_add(0, batch, x[:, :1])


def test_what_was_asked_already_is_not_asked_again() -> None:
    """Where single losses are known from explaining, parts ask about sets of nodes only."""
    graphs, model = [marked_path(*pair) for pair in PAIRS[:2]], SumOfMarks()
    for graph, mark in zip(graphs, (3.0, 5.0), strict=True):
        graph.x[8, 0] = mark
    predictor = Predictor(model, level="graph", mode="regression", num_hops=1)
    inputs = TaskInputs.of(predictor, Instances.of_graphs(graphs))
    reward = prepare_reward(Settings(max_nodes=4, evidence="own", keep_probability=0.5), inputs)
    assert reward.own is not None
    asked = []
    handle = model.register_forward_pre_hook(lambda _, given: asked.append(given[0].size(0)))
    firsts = Subgraphs(torch.arange(2), torch.tensor([[1, 2], [19, 20]]))
    known = find_parts(reward, firsts, torch.ones(32), 0)
    with_own, reward.own = sum(asked), None
    asked.clear()
    assert find_parts(reward, firsts, torch.ones(32), 0) == known
    handle.remove()
    assert sum(asked) == with_own + 2 * 16 * 15 + 2 * 16  # each graph without each node, and whole


def test_a_needed_node_of_little_probability_brings_no_others_along() -> None:
    """There are two of the second mark, so that neither is missed; they are the least probable nodes of all."""
    graph = marked_path(1, 12)
    graph.x[14] = graph.x[12]
    probability = torch.linspace(0.3, 0.2, 16)
    probability[[1, 12, 14]] = torch.tensor([1.0, 0.1, 0.05])
    reward = prepare_reward(Settings(max_nodes=4), inputs_of(BothMarks(), [graph]))
    (found,) = find_parts(reward, Subgraphs(torch.tensor([0]), torch.tensor([[1, 2]])), probability, 0)
    assert {part.nodes for part in found} == {(1,), (12,)}


def test_what_a_neighbour_brings_alone_is_no_loss() -> None:
    """Own evidence of a node's class holds such gains too; which nodes are needed is asked of the model."""
    graph = random_graph(14, 0.2, seed=3)
    instances = Instances.around_nodes(graph.x, graph.edge_index, range(14), 2)
    reward = prepare_reward(
        Settings(max_nodes=5, reward="context"), TaskInputs.of(Predictor(NodeModel(), num_hops=2), instances)
    )
    roots = Subgraphs(torch.arange(14), instances.roots[:, None])
    probability = torch.linspace(0.9, 0.1, instances.num_nodes)
    reward.own = None
    known = find_parts(reward, roots, probability, 0)
    reward.own = torch.full((instances.num_nodes,), 50.0, dtype=torch.double)
    assert find_parts(reward, roots, probability, 0) == known


def test_each_part_is_connected_and_measured_on_the_model(explained) -> None:
    model = BothMarks()
    for pair, one in zip(PAIRS, explained, strict=True):
        graph = marked_path(*pair)
        whole = nx.Graph(graph.edge_index.t().tolist())
        for part in one.parts:
            assert nx.is_connected(whole.subgraph(part.nodes))
            only = graph.subgraph(torch.tensor(sorted(part.nodes)))
            rest = graph.subgraph(torch.tensor(sorted(set(range(16)) - set(part.nodes))))
            for data, found in ((only, part.prediction_only), (rest, part.prediction_without)):
                wanted = model(data.x, data.edge_index).softmax(dim=1)[0]
                torch.testing.assert_close(torch.tensor(found), wanted, rtol=1e-4, atol=1e-5)
        together = graph.subgraph(torch.tensor(sorted(one.parts.nodes)))
        wanted = model(together.x, together.edge_index).softmax(dim=1)[0]
        torch.testing.assert_close(torch.tensor(one.parts.prediction_only), wanted, rtol=1e-4, atol=1e-5)


def test_a_class_that_nothing_holds_is_recognised() -> None:
    """Class 0 is the lack of a mark: every part of the graph holds it alike."""
    graphs = [marked_path(3, 8) for _ in range(6)]
    for number, graph in enumerate(graphs):
        graph.x[:, 0] = 0  # the first mark is missing
        graph.x[(number + 3) % 16, 1] = 1
    explainer = GFlowExplainer(seed=0, max_nodes=4, max_updates=5, num_hops=1)
    explainer.fit(BothMarks(), graphs, model_config=CONFIG, progress=False)
    for one in explainer.explain(BothMarks(), graphs, model_config=CONFIG, progress=False):
        assert not one.holds
        assert one.parts.preserved_by_random > 0.9
        assert "Nothing found holds" in one.parts.verdict()


class AllNodes(nn.Module):
    """Class 1 slowly gains with every node of a graph: only all of them hold what they say together."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(x.size(0), dtype=torch.long) if batch is None else batch
        odds = 0.25 * (torch.bincount(batch).float() - 12.5)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def test_all_of_a_graph_is_no_explanation_of_it() -> None:
    graphs = [marked_path(*pair) for pair in PAIRS]
    explainer = GFlowExplainer(seed=0, max_nodes=4, max_updates=5, num_hops=1)
    explainer.fit(AllNodes(), graphs, model_config=CONFIG, progress=False)
    for one in explainer.explain(AllNodes(), graphs, model_config=CONFIG, progress=False):
        assert len(one.parts.nodes) > 8
        assert one.parts.preserved > 0.9
        assert one.parts.preserved_by_random is not None
        assert not one.holds


class AnyMark(nn.Module):
    """Class 1 if a node of the first kind is there; a second one adds nothing."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(x.size(0), dtype=torch.long) if batch is None else batch
        marks = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x[:, 0]).clamp(max=1)
        return torch.stack([torch.zeros_like(marks), 8 * (marks - 0.5)], dim=1)


def test_a_copy_elsewhere_is_no_reason_to_doubt_an_explanation() -> None:
    graphs = [marked_path(*pair) for pair in PAIRS]
    for graph, (first, second) in zip(graphs, PAIRS, strict=True):
        graph.x[second] = graph.x[first]
        graph.x[(second - 4) % 16] = graph.x[first]
    explainer = GFlowExplainer(seed=0, max_nodes=4, max_updates=10, num_hops=1)
    explainer.fit(AnyMark(), graphs, model_config=CONFIG, progress=False)
    for one in explainer.explain(AnyMark(), graphs, model_config=CONFIG, progress=False):
        assert 0.1 < one.parts.preserved_by_random < 0.8  # some of them hit a copy
        assert one.holds


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


@pytest.mark.parametrize(
    ("shown", "random", "holds"),
    [
        (0.90, 0.60, True),  # clearly more probable
        (0.70, 0.50, False),  # a little, by a model that is not sure
        (0.98, 0.80, True),  # no more than that, but of one that is
        (0.98, 0.90, False),
        (0.40, 0.10, False),  # another class
    ],
)
def test_a_class_holds_if_it_is_clearly_more_probable_or_surer(shown, random, holds) -> None:
    odds = torch.tensor([shown]).double()
    target = Target(torch.tensor([[0.01, 0.99]]).double(), torch.tensor([1]), torch.ones(1))
    prediction = torch.stack([1 - odds, odds], dim=1)
    together = preservation_of(target, prediction, torch.tensor([0]))
    average = torch.tensor([random]).double()
    assert bool(_is_better(target, together, _RandomParts(average / 0.99, average.logit()))[0]) == holds


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
    explanations = GFlowExplainer(seed=0, max_nodes=5, max_updates=5).explain(
        NodeModel(), graph, index=[0, 5], progress=False
    )
    whole = nx.Graph(graph.edge_index.t().tolist())
    for node, one in zip((0, 5), explanations, strict=True):
        assert len(one.parts) == 1
        assert node in one.parts[0].nodes
        assert nx.is_connected(whole.subgraph(one.parts[0].nodes))
