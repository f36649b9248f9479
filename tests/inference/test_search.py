"""Beam search against networkx's own enumeration, and the public class that uses it."""

from itertools import combinations

import networkx as nx
import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.search import search
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.rewards.prediction import PredictionReward
from gflowexplainer.testing import GraphModel, LinkModel, NodeModel, random_graph

GRAPH = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
WIDE = 10_000


def connected_sets(graph: nx.Graph, most: int, inside: int | None) -> set[frozenset[int]]:
    sets = (frozenset(nodes) for size in range(1, most + 1) for nodes in combinations(graph.nodes, size))
    return {nodes for nodes in sets if (inside is None or inside in nodes) and nx.is_connected(graph.subgraph(nodes))}


def sets_of(found: Subgraphs) -> list[frozenset[int]]:
    return [frozenset(node for node in row if node >= 0) for row in found.members.tolist()]


def reward_of(level: str) -> tuple[PredictionReward, nx.Graph, int | None]:
    data = random_graph(9, 0.25, seed=3)
    if level == "graph":
        instances, center = Instances.of_graphs([data]), None
        predictor = Predictor(GraphModel(), level="graph")
    else:
        instances = Instances.around_nodes(data.x, data.edge_index, [4], 9)
        predictor, center = Predictor(NodeModel(), num_hops=9), int(instances.center[0])
    places = nx.Graph()
    places.add_nodes_from(range(instances.num_nodes))
    places.add_edges_from(zip(instances.neighbor_row.tolist(), instances.neighbor.tolist(), strict=True))
    return PredictionReward(predictor, instances, beta=2.0), places, center


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_wide_beam_finds_every_connected_subgraph_once_and_weighs_it_by_reward(level: str) -> None:
    reward, places, center = reward_of(level)
    found, log_weight = search(reward.instances, reward, 4, WIDE)
    assert len(sets_of(found)) == len(set(sets_of(found)))
    assert set(sets_of(found)) == connected_sets(places, 4, center)
    assert torch.allclose(log_weight, 2.0 * reward.log_score(found).double())


@pytest.mark.parametrize("level", ["node", "graph"])
def test_what_is_too_small_is_not_listed_unless_it_cannot_grow(level: str) -> None:
    reward, places, center = reward_of(level)
    reward.min_nodes = 3
    found, _ = search(reward.instances, reward, 4, WIDE)
    large = {nodes for nodes in connected_sets(places, 4, center) if len(nodes) >= 3}
    components = {frozenset(nodes) for nodes in nx.connected_components(places)}
    assert set(sets_of(found)) == large | {n for n in components if len(n) < 3 and (center is None or center in n)}


@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_best_of_each_size_go_on(level: str) -> None:
    reward, places, _ = reward_of(level)
    every, narrow = (search(reward.instances, reward, 4, width)[0] for width in (WIDE, 2))
    score = dict(zip(sets_of(every), reward.log_score(every).tolist(), strict=True))
    seen = set(sets_of(narrow))
    for size in (1, 2, 3):
        here = {nodes for nodes in seen if len(nodes) == size}
        around = {nodes | {n} for nodes in here for member in nodes for n in places[member] if n not in nodes}
        best = sorted(around, key=lambda nodes: -score[nodes])[:2]
        assert {nodes for nodes in seen if len(nodes) == size + 1} == set(best)


def passed(places: nx.Graph, nodes: frozenset[int], center: int | None) -> float:
    """Returns the probability that random growth passes some nodes, from all ways to them."""
    if len(nodes) == 1:
        return 1.0 if center is not None else 1 / len(places)
    total = 0.0
    for last in nodes - {center}:
        before = nodes - {last}
        if nx.is_connected(places.subgraph(before)):
            around = {n for member in before for n in places[member]} - before
            total += passed(places, before, center) / len(around)
    return total


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_narrow_beam_weighs_every_subgraph_right_on_average(level: str) -> None:
    """Over many seeds, the mean weight of a subgraph is its reward times the probability that growth passes it."""
    reward, places, center = reward_of(level)
    rounds, most, width = 200, 3, 6
    mean: dict[frozenset[int], list[float]] = {nodes: [] for nodes in connected_sets(places, most, center)}
    for seed in range(rounds):
        found, log_weight = search(reward.instances, reward, most, width, "growth", seed)
        assert max(torch.bincount(found.size)) <= width
        for nodes, value in zip(sets_of(found), log_weight.exp().tolist(), strict=True):
            mean[nodes].append(value)
    every = search(reward.instances, reward, most, WIDE)[0]
    held = dict(zip(sets_of(every), reward.log_reward(every).exp().tolist(), strict=True))
    assert any(len(values) < rounds for values in mean.values())
    for nodes, values in mean.items():
        values += [0.0] * (rounds - len(values))
        deviation = float(torch.tensor(values).std()) / rounds**0.5
        assert sum(values) / rounds == pytest.approx(
            held[nodes] * passed(places, nodes, center), abs=5 * deviation + 1e-9
        )


def test_without_a_fit_nothing_is_trained_unless_training_is_set() -> None:
    data, model = random_graph(30, 0.08, seed=1), NodeModel(seed=1)
    small = {"max_nodes": 3, "num_samples": 8, "num_contexts": 4, "reference_nodes": 4}

    def read(explainer: GFlowExplainer) -> str:
        (found,) = explainer.explain(model, data, [3], progress=False)
        return str(found.weighting)

    # What a search finds is weighed by reward, what a network samples is counted.
    assert read(GFlowExplainer(**small)) == "reward"
    assert read(GFlowExplainer(**small, inference="flow", epochs=2)) == "policy"
    assert read(GFlowExplainer(**small, epochs=2)) == "policy"
    assert read(GFlowExplainer(**small, max_updates=2).fit(model, data, [0, 3, 7], progress=False)) == "policy"


def test_what_was_searched_for_is_certified_by_what_is_shown() -> None:
    data, model = random_graph(12, 0.2, seed=1), NodeModel(seed=1)
    explainer = GFlowExplainer(max_nodes=4, num_samples=WIDE, num_contexts=4, reference_nodes=4)
    (found,) = explainer.explain(model, data, [3], progress=False)
    assert found.certificate.distance == found.certificate.shown_distance == pytest.approx(0, abs=1e-6)


def test_the_class_searches_without_training(tmp_path) -> None:
    data, model = random_graph(30, 0.08, seed=1), NodeModel(seed=1)
    explainer = GFlowExplainer(inference="search", max_nodes=4, num_samples=8, num_contexts=4)
    alone = explainer.explain(model, data, [3, 7], progress=False)
    assert [len(one.subgraphs[0].nodes) >= 2 for one in alone] == [True, True]
    explainer.fit(model, data, [0, 3, 7, 9], folder=tmp_path, progress=False)
    fitted = explainer.explain(model, data, [3, 7], progress=False)
    again = GFlowExplainer.load(tmp_path).explain(model, data, [3, 7], progress=False)
    for one, other in zip(fitted, again, strict=True):
        assert one.subgraphs[0].nodes == other.subgraphs[0].nodes
        assert torch.equal(one.node_mask, other.node_mask)
        assert sum(subgraph.probability for subgraph in one.subgraphs) == pytest.approx(1)


def test_links_are_not_searched_for() -> None:
    data = random_graph(12, 0.3)
    pair = torch.tensor([[0], [5]])
    with pytest.raises(ConfigError, match="joins both its ends"):
        GFlowExplainer(inference="search").explain(LinkModel(), data, edge_label_index=pair, progress=False)
    with pytest.raises(ConfigError, match="'inference'"):
        GFlowExplainer(inference="guess")
