"""Sets grown around a node, on a model whose answers are worked out by hand, and against every connected set."""

from itertools import combinations

import networkx
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv
from torch_geometric.utils import to_networkx

from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference import part_nodes
from gflowexplainer.inference.enough_and_needed import grow_enough_and_needed
from gflowexplainer.inference.random_parts import Neighbors
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.factory import prepare_reward
from gflowexplainer.settings import Settings
from gflowexplainer.testing import NodeModel, random_graph

CENTER, HOPS = 4, 3


class WeightsAround(nn.Module):
    """The log-odds of class 1 are the weights of a node and all at most three steps away, less a threshold."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold, self.most = threshold, SimpleConv(aggr="max")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        # A pair of columns says whether one node is near and what it counts, so that nobody is counted twice.
        near, weight = x.chunk(2, dim=1)
        for _ in range(HOPS):
            near = torch.maximum(near, self.most(near, edge_index).clamp(min=0))
            weight = torch.maximum(weight, self.most(weight, edge_index).clamp(min=0))
        odds = (weight - 10 * near).sum(dim=1) - self.threshold
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def tree(weight: dict[int, float]) -> Data:
    """A path of nine nodes, with a leaf at each of the three in the middle."""
    pairs = torch.tensor([*((i, i + 1) for i in range(8)), (3, 9), (4, 10), (5, 11)]).t()
    ten = torch.full((12,), 10.0)
    ten[list(weight)] += torch.tensor(list(weight.values()))
    x = torch.cat([torch.eye(12), ten.diag()], dim=1)
    return Data(x=x, edge_index=torch.cat([pairs, pairs.flip(0)], dim=1))


def reward_of(weight: dict[int, float], threshold: float) -> Reward:
    data = tree(weight)
    instances = Instances.around_nodes(data.x, data.edge_index, [CENTER], HOPS)
    predictor = Predictor(WeightsAround(threshold), num_hops=HOPS)
    return prepare_reward(Settings(max_nodes=6, reward="context"), TaskInputs.of(predictor, instances))


def grown(reward: Reward, first: set[int], probability: dict[int, float] | None = None) -> set[int]:
    ids = reward.instances.node_id.tolist()
    value = [(probability or {}).get(node, 0.1) for node in ids]
    start = frozenset(place for place, node in enumerate(ids) if node in first)
    (found,) = grow_enough_and_needed(reward, Neighbors(reward.instances), [start], value)
    return {ids[place] for place in found}


def done(weight: dict[int, float], threshold: float, nodes: set[int]) -> float:
    """How much more probable class 1 is with only some nodes than without them; no model is asked."""
    reach = networkx.Graph(to_networkx(tree(weight), to_undirected=True))

    def probability(kept: set[int]) -> float:
        near = networkx.single_source_shortest_path_length(reach.subgraph(kept | {CENTER}), CENTER, HOPS)
        odds = sum(weight.get(node, 0.0) for node in near) - threshold
        return float(torch.tensor(odds, dtype=torch.double).sigmoid())

    return probability(nodes) - probability(set(reach) - nodes)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_grown_is_the_best_of_all_connected_sets(seed: int) -> None:
    """Two branches with a few nodes that count: growth finds what listing every connected set finds."""
    numbers = torch.rand(12, generator=torch.Generator().manual_seed(seed)).tolist()
    weight = {node: 3 * numbers[node] for node in (3, 5, 10)} | {6: 1.5 * numbers[6], 9: -1.0}
    graph = networkx.Graph(to_networkx(tree(weight), to_undirected=True))
    near = [n for n, steps in networkx.single_source_shortest_path_length(graph, CENTER).items() if steps <= HOPS]
    every = [
        {CENTER, *rest}
        for size in range(1, 6)
        for rest in combinations(sorted(set(near) - {CENTER}), size)
        if networkx.is_connected(graph.subgraph({CENTER, *rest}))
    ]
    threshold = 0.4 * sum(weight.values())
    best = max(every, key=lambda nodes: done(weight, threshold, nodes) - 0.02 * len(nodes))
    assert grown(reward_of(weight, threshold), {CENTER, 3, 9}) == best


def test_a_node_that_does_hardly_anything_is_not_shown() -> None:
    """The leaf adds one in a hundred, of which both ways together tell less than the node is worth."""
    assert grown(reward_of({3: 4.0, 10: 0.02}, 2.0), {CENTER, 3}) == {CENTER, 3}
    assert grown(reward_of({3: 2.0, 10: 1.0}, 1.5), {CENTER, 3}) == {CENTER, 3, 10}


def test_nodes_that_speak_against_the_class_are_left_out_though_they_came_first() -> None:
    assert grown(reward_of({3: 3.0, 5: -2.0}, 0.5), {CENTER, 3, 5}) == {CENTER, 3}


def test_nothing_is_larger_than_twice_the_first_subgraph() -> None:
    every = dict.fromkeys(range(12), 1.0)
    assert len(grown(reward_of(every, 4.0), {CENTER, 3})) == 4


def test_among_equals_the_more_probable_node_joins() -> None:
    reward = reward_of({3: 3.0, 5: 3.0}, 2.0)
    assert grown(reward, {CENTER}, {5: 0.9}) == {CENTER, 5}
    assert grown(reward, {CENTER}, {3: 0.9}) == {CENTER, 3}


def test_parts_do_at_least_as_much_as_the_first_subgraph() -> None:
    """Where a class of nodes follows its own evidence, what is shown is measured both ways."""
    data, model = random_graph(60, 0.08, seed=3), NodeModel()
    explainer = GFlowExplainer(max_nodes=5, evidence="own", epochs=20, seed=0)
    index = list(range(8))
    explainer.fit(model, data, index=index, progress=False)
    classes = model(data.x, data.edge_index).argmax(dim=1).tolist()
    for node, explanation in zip(index, explainer.explain(model, data, index=index, progress=False), strict=True):
        label, first, parts = classes[node], explanation.subgraphs[0], explanation.parts
        shown, before = (
            float(one.prediction_only[label]) - float(one.prediction_without[label]) for one in (parts, first)
        )
        assert shown >= before - 0.02 * (len(first.nodes) - len(parts.nodes)) - 1e-6
        assert len(parts.nodes) <= 2 * len(first.nodes)


@pytest.mark.parametrize(("evidence", "follows"), [("own", True), ("shared", False)])
def test_only_classes_of_nodes_that_follow_their_own_evidence_are_grown_so(
    evidence: str, follows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def record(reward: Reward, neighbors: Neighbors, firsts: list[frozenset[int]], value: list[float]) -> object:
        asked.append(len(firsts))
        return grow_enough_and_needed(reward, neighbors, firsts, value)

    monkeypatch.setattr(part_nodes, "grow_enough_and_needed", record)
    data, model = random_graph(60, 0.08, seed=3), NodeModel()
    explainer = GFlowExplainer(max_nodes=4, evidence=evidence, epochs=5, seed=0)
    explainer.fit(model, data, index=[0, 1, 2, 3], progress=False)
    (explanation,) = explainer.explain(model, data, index=[2], progress=False)
    assert explanation.parts.nodes
    assert asked == ([1] if follows else [])
