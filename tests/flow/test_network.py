import math

import networkx as nx
import pytest
import torch

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.network import FlowNetwork, NetworkInputs, node_features
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import subgraph_keys
from gflowexplainer.settings import Settings
from gflowexplainer.testing import house, random_graph, star


def network_on(settings, level="node"):
    graph = random_graph(14, 0.1, seed=1)
    if level == "node":
        instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 5, 9], 2)
    else:
        instances = Instances.of_graphs([graph, house()])
    inputs = NetworkInputs.of(instances, instances.x, settings, 2)
    return FlowNetwork(settings, inputs), inputs


def test_weights_follow_the_seed_and_leave_the_global_state_alone():
    before = torch.get_rng_state()
    one, _ = network_on(Settings(seed=5))
    two, _ = network_on(Settings(seed=5))
    other, _ = network_on(Settings(seed=6))
    assert torch.equal(before, torch.get_rng_state())
    weight = "policy.per_node.weight"
    assert torch.equal(one.state_dict()[weight], two.state_dict()[weight])
    assert not torch.equal(one.state_dict()[weight], other.state_dict()[weight])


def test_the_papers_policy_sees_features_alone():
    network, inputs = network_on(Settings.preset("paper"))
    assert inputs.features.size(1) == 3
    assert network.locator is None


def test_a_locator_belongs_to_graphs():
    network, inputs = network_on(Settings.preset("paper"), level="graph")
    assert network.locator is not None
    start = network.starts(inputs, torch.tensor([1, 0, 1]))
    assert inputs.instances.owner[start].tolist() == [1, 0, 1]


def test_an_untouched_network_explains_other_instances():
    network, _ = network_on(Settings(max_nodes=4))
    graph = random_graph(9, seed=8)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [1, 2], 2)
    inputs = NetworkInputs.of(instances, instances.x, network.settings, 2)
    several = torch.tensor([0, 0, 1, 1])
    one, two = (network.sample(inputs, several, 3).subgraphs for _ in range(2))
    assert torch.equal(one.members, two.members)
    # One instance alone is answered as it is in context.
    alone = NetworkInputs.of(
        instances.select(torch.tensor([1])), instances.x[instances.owner == 1], network.settings, 2
    )
    mine = network.sample(alone, torch.tensor([0, 0]), 3).subgraphs
    assert torch.equal(subgraph_keys(alone.instances, mine), subgraph_keys(instances, one)[2:])


def test_rewards_that_need_a_start_refuse_to_start_anywhere():
    with pytest.raises(ConfigError, match="start='locator'"):
        network_on(Settings(reward="regularized"), level="graph")


@pytest.mark.parametrize(("objective", "rows"), [("trajectory_balance", 1), ("conditional_trajectory_balance", 3)])
def test_learned_partition_functions(objective, rows):
    network, inputs = network_on(Settings(objective=objective))
    every = torch.arange(3)
    value = network.log_partition(inputs, every, inputs.instances.center)
    assert value.shape == (rows, 1)
    assert torch.isfinite(value).all()


def test_features_are_x_degree_distance_and_embedding():
    graph = random_graph(12, 0.1, seed=4)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [3], 2)
    embedding = torch.randn(instances.num_nodes, 5, generator=torch.Generator().manual_seed(0))
    features = node_features(instances, embedding, 2)
    assert features.shape == (instances.num_nodes, 3 + 1 + 3 + 5)
    torch.testing.assert_close(features[:, :3], instances.x)
    torch.testing.assert_close(features[:, 7:], embedding)
    inside = nx.Graph(instances.edge_index.t().tolist())
    for node in range(instances.num_nodes):
        assert float(features[node, 3]) == pytest.approx(math.log1p(inside.degree(node)), rel=1e-6)
        hops = nx.shortest_path_length(inside, node, int(instances.center[0]))
        assert features[node, 4:7].argmax() == hops


def test_a_graph_has_no_distances():
    instances = Instances.of_graphs([star(3)])
    assert node_features(instances, None, 2)[:, 4:].abs().sum() == 0


def test_wide_features_are_left_to_the_embeddings(monkeypatch):
    monkeypatch.setattr("gflowexplainer.flow.network.WIDE", 2)
    instances = Instances.of_graphs([star(3)])
    embedding = torch.ones(instances.num_nodes, 5)
    assert node_features(instances, embedding, 2).size(1) == 1 + 3 + 5
    assert node_features(instances, None, 2).size(1) == 3 + 1 + 3
