import pytest
import torch
from torch_geometric.nn import APPNP

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.paper_policy import PaperPolicy
from gflowexplainer.flow.sampling import grow_uniformly, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import house, random_graph


def states_of(graphs, max_nodes=4):
    instances = Instances.of_graphs(graphs)
    every = torch.arange(len(graphs))
    return roll_out(instances, every, instances.ptr[:-1], max_nodes, grow_uniformly).states


@pytest.mark.parametrize(("alpha", "layers"), [(0.85, 3), (0.15, 3), (0.5, 2), (0.3, 1), (0.9, 0)])
def test_propagation_is_pygs_appnp(alpha, layers):
    instances = Instances.of_graphs([random_graph(10, 0.3, 1), house()])
    policy = PaperPolicy(3, alpha=alpha, layers=layers)
    encoding = policy.encode(instances, instances.x)
    expected = instances.x if layers == 0 else APPNP(layers, alpha)(instances.x, instances.edge_index)
    torch.testing.assert_close(encoding.spread_features, expected)


def test_rows_on_the_graph_are_appnp_of_features_and_indicators():
    states = states_of([random_graph(8, 0.3, 2)])
    policy = PaperPolicy(3)
    encoding = policy.encode(states.instances, states.instances.x)
    rows, state, node = policy._signals_on_graph(encoding, states)
    for row in range(len(states)):
        members = states.members[row][: states.size[row]]
        indicators = torch.zeros(8, 2)
        indicators[members[0], 0] = 1
        indicators[members, 1] = 1
        signal = torch.cat([states.instances.x, indicators], dim=1)
        expected = APPNP(3, 0.85)(signal, states.instances.edge_index)
        torch.testing.assert_close(rows[state == row], expected[node[state == row]])


def test_rows_on_the_frontier_are_appnp_on_the_induced_graph():
    from torch_geometric.utils import subgraph

    states = states_of([random_graph(9, 0.25, 5)])
    policy = PaperPolicy(3, propagation="frontier")
    encoding = policy.encode(states.instances, states.instances.x)
    rows, state, node = policy._signals_on_frontier(encoding, states)
    for row in range(len(states)):
        members = states.members[row][: states.size[row]]
        indicators = torch.zeros(9, 2)
        indicators[members[0], 0] = 1
        indicators[members, 1] = 1
        signal = torch.cat([states.instances.x, indicators], dim=1)
        edges, _ = subgraph(node[state == row], states.instances.edge_index, num_nodes=9)
        expected = APPNP(3, 0.85)(signal, edges)
        torch.testing.assert_close(rows[state == row], expected[node[state == row]])


def test_stop_is_the_attention_weighted_mean_of_members_and_frontier():
    states = states_of([house()])
    policy = PaperPolicy(3)
    encoding = policy.encode(states.instances, states.instances.x)
    rows, state, _ = policy._signals_on_graph(encoding, states)
    _, stop = policy.log_flows(encoding, states)
    for row in range(len(states)):
        hidden = policy.mlp(policy.transform(rows[state == row]))
        gamma = policy.attention(hidden).softmax(dim=0)
        torch.testing.assert_close(stop[row : row + 1], policy.head((gamma * hidden).sum(dim=0)))


@pytest.mark.parametrize("settings", [{"alpha": 1.2}, {"alpha": -0.1}, {"layers": 4}, {"propagation": "grpah"}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ConfigError):
        PaperPolicy(3, **settings)
