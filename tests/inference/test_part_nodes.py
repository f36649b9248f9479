"""Models that are worked out by hand: which nodes are chosen where the first subgraph holds, nearly holds, or not."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.part_nodes import choose_nodes
from gflowexplainer.inference.random_parts import Neighbors, NodeSet
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.factory import prepare_reward
from gflowexplainer.settings import Settings

SIZE = 12


class WeightsOfGraphs(nn.Module):
    """The log-odds of class 1 are the sum of the weights less a threshold; a single node is called class 1 as well."""

    def __init__(self, threshold: float, alone: float = -9.0) -> None:
        super().__init__()
        self.threshold, self.alone = threshold, alone

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(x.size(0), dtype=torch.long) if batch is None else batch
        number = int(batch.max()) + 1
        odds = torch.zeros(number).index_add(0, batch, x[:, 0]) - self.threshold
        odds = torch.where(torch.bincount(batch, minlength=number) == 1, torch.tensor(self.alone), odds)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


class WeightsAroundNodes(nn.Module):
    """The log-odds of class 1 are the weights of a node and all at most three steps away, less a threshold."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold
        self.sum = SimpleConv(aggr="max")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        # Each column says whether one node is near, so that nobody is counted twice.
        near = x[:, 1:]
        for _ in range(3):
            near = torch.maximum(near, self.sum(near, edge_index).clamp(min=0))
        odds = near.sum(dim=1) - self.threshold
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def path(weights: dict[int, float]) -> Data:
    edges = torch.tensor([[i, i + 1] for i in range(SIZE - 1)]).t()
    weight = torch.zeros(SIZE)
    weight[list(weights)] = torch.tensor(list(weights.values()))
    return Data(
        x=torch.cat([weight[:, None], weight.diag()], dim=1), edge_index=torch.cat([edges, edges.flip(0)], dim=1)
    )


def chosen(reward: Reward, first: set[int], probability: dict[int, float]) -> NodeSet:
    value = torch.full((reward.instances.num_nodes,), 0.05)
    value[list(probability)] = torch.tensor(list(probability.values()))
    return choose_nodes(reward, [frozenset(first)], Neighbors(reward.instances), value)[0]


def graph_reward(weights: dict[int, float], threshold: float, alone: float = -9.0) -> Reward:
    predictor = Predictor(WeightsOfGraphs(threshold, alone), level="graph", num_hops=1)
    return prepare_reward(Settings(max_nodes=6), TaskInputs.of(predictor, Instances.of_graphs([path(weights)])))


def node_reward(weights: dict[int, float], threshold: float) -> Reward:
    data = path(weights)
    instances = Instances.around_nodes(data.x, data.edge_index, [5], 3)
    predictor = Predictor(WeightsAroundNodes(threshold), num_hops=3)
    return prepare_reward(Settings(max_nodes=6, reward="context"), TaskInputs.of(predictor, instances))


def places(reward: Reward, nodes: set[int]) -> set[int]:
    """Where nodes of the graph stand in the instance."""
    return {place for place, node in enumerate(reward.instances.node_id.tolist()) if node in nodes}


def test_a_first_subgraph_that_keeps_the_class_and_most_of_it_needs_nothing_more() -> None:
    """Log-odds are 1 of the whole graph (.73) and .3 with only the first subgraph (.57): .79 of it is left."""
    sure = {3: 0.9, 4: 0.9}
    assert chosen(graph_reward({3: 4.0, 4: 4.3, 9: 0.7}, 8.0), {3, 4}, sure) == {3, 4}
    # With .1 instead of .3 only .72 is left, and the third node has to join.
    assert chosen(graph_reward({3: 4.0, 4: 4.1, 9: 0.9}, 8.0), {3, 4}, sure) >= {3, 4, 9}
    # With 1.7 of 9 most of the probability is left, but hardly any of the odds.
    assert chosen(graph_reward({3: 4.7, 4: 5.0, 9: 7.3}, 8.0), {3, 4}, sure) >= {3, 4, 9}


def test_a_model_that_is_sure_already_leaves_a_first_subgraph_whole() -> None:
    """Any two of three nodes are enough; that all three are named is said by how far they stand out."""
    reward = graph_reward({3: 20.0, 4: 20.0, 5: 20.0}, 15.0)
    named = {3: 0.9, 4: 0.9, 5: 0.9}
    assert chosen(reward, {3, 4, 5}, named | {6: 0.42}) == {3, 4, 5}
    # Where two stand out from the third as far as all of them do from the rest, two are enough.
    assert len(chosen(reward, {3, 4, 5}, named | {5: 0.6, 6: 0.42})) == 2


def test_what_a_subgraph_cannot_be_small_enough_for_is_still_found() -> None:
    """Samples have two nodes at least. A class that one node holds needs no other, though one came along."""
    reward = graph_reward({3: 20.0}, 15.0, alone=20.0)
    named = {3: 0.9, 4: 0.4}
    assert reward.min_nodes == 2
    assert chosen(reward, {3, 4}, named) == {3}


def test_a_first_subgraph_that_holds_grows_only_where_that_makes_the_class_stronger() -> None:
    """The third node is nearly as probable as the first two, and no other is."""
    named = dict.fromkeys(range(SIZE), 0.0) | {3: 0.9, 4: 0.9, 5: 0.85}
    assert chosen(graph_reward({3: 20.0, 4: 20.0}, 15.0), {3, 4}, named) == {3, 4}
    assert chosen(graph_reward({3: 6.0, 4: 6.0, 5: 4.0}, 8.0), {3, 4}, named) == {3, 4, 5}


def test_what_a_model_says_of_a_single_node_does_not_replace_what_is_probable() -> None:
    """Any node alone is called class 1, more surely than the graph; what the evidence names is completed instead."""
    weights = {3: 4.0, 4: 4.0, 9: 4.0}
    assert chosen(graph_reward(weights, 9.0, alone=5.0), {3, 4}, {3: 0.9, 4: 0.9, 9: 0.3}) == {3, 4, 9}


def test_a_first_subgraph_that_is_less_probable_than_what_holds_is_not_part_of_it() -> None:
    """The class rests on nodes 3, 4 and 9; the first subgraph names another, of which the masks think little."""
    reward = graph_reward({3: 4.0, 4: 4.0, 9: 4.0}, 9.0)
    sure = {3: 0.9, 4: 0.9, 9: 0.8}
    assert chosen(reward, {6}, sure | {6: 0.2}) == {3, 4, 9}
    assert chosen(reward, {6}, sure | {6: 0.95}) >= {3, 4, 6, 9}


def test_the_first_subgraph_of_a_node_is_extended_until_it_holds() -> None:
    """Nodes 5 and 6 are not enough. The one that the model misses most is node 8, with node 7 on the way to it."""
    reward = node_reward({5: 2.0, 6: 2.0, 8: 6.0, 4: 0.1}, 6.0)
    found = chosen(reward, places(reward, {5, 6}), {})
    assert found == places(reward, {5, 6, 7, 8})


def test_needed_nodes_replace_a_first_subgraph_only_where_they_stand_out_more() -> None:
    """Nodes 5, 6 and 7 are needed, 4 and 3 hardly; whether 4 belongs to it is said by how it stands out."""
    reward = node_reward({5: 6.0, 6: 6.0, 7: 6.0}, 15.0)
    first = places(reward, {4, 5, 6, 7})
    even = dict.fromkeys(range(reward.instances.num_nodes), 0.5)
    assert chosen(reward, first, even) == places(reward, {5, 6, 7})
    graded = node_reward({5: 6.0, 6: 6.0, 7: 6.0, 4: 2.0, 3: 1.5}, 15.0)
    first = places(graded, {4, 5, 6, 7})
    sure = {place: 0.95 if place in first else 0.01 for place in range(graded.instances.num_nodes)}
    assert chosen(graded, first, sure) == first
