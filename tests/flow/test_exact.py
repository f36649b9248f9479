import itertools

import networkx as nx
import pytest
import torch

from gflowexplainer.errors import EnumerationError
from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.exact import enumerate_subgraphs, exact_marginals, terminal_distribution, total_variation
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import subgraph_keys
from gflowexplainer.ops.segments import segment_sum
from gflowexplainer.testing import cycle, house, path, random_graph, star


def brute_force(graph, max_nodes, root=None):
    for size in range(1, max_nodes + 1):
        for nodes in itertools.combinations(sorted(graph.nodes), size):
            if (root is None or root in nodes) and nx.is_connected(graph.subgraph(nodes)):
                yield frozenset(nodes)


@pytest.mark.parametrize("root", [None, 2])
@pytest.mark.parametrize("max_nodes", [1, 3, 6])
def test_enumeration_finds_each_connected_subgraph_once(root, max_nodes):
    graphs = [house(), cycle(7), path(5), star(4), random_graph(9, 0.3, 0), random_graph(9, 0.6, 1)]
    instances = Instances.of_graphs(graphs)
    start = None if root is None else instances.ptr[:-1] + root
    enumeration = enumerate_subgraphs(instances, torch.arange(len(graphs)), start, max_nodes)
    for number, graph in enumerate(graphs):
        mine = torch.nonzero(enumeration.root == number).flatten()
        found = [
            frozenset((row[row >= 0] - instances.ptr[number]).tolist()) for row in enumeration.states.members[mine]
        ]
        found = [nodes for nodes in found if nodes]
        expected = set(brute_force(nx.Graph(graph.edge_index.t().tolist()), max_nodes, root))
        assert len(found) == len(expected)
        assert set(found) == expected


def test_children_hold_their_parent_and_one_node_more():
    instances = Instances.of_graphs([random_graph(8, 0.3, 3)])
    enumeration = enumerate_subgraphs(instances, torch.tensor([0]), torch.tensor([0]), 5)
    states = enumeration.states
    keys = subgraph_keys(instances, states.subgraphs)
    parent = states.frontier_state
    assert torch.equal(keys[enumeration.child], keys[parent] + instances.key[states.frontier])
    # As many edges enter a state as it has parents by the dag rule.
    entering = torch.bincount(enumeration.child, minlength=len(states))
    assert torch.equal(entering, states.parents("dag").sum(dim=1))


def test_states_stand_in_the_order_in_which_they_are_first_met():
    """So that their order is that of nodes and edges, whatever the hashes of the sets are."""
    instances = Instances.of_graphs([random_graph(8, 0.3, 3), house()])
    enumeration = enumerate_subgraphs(instances, torch.arange(2), None, 4)
    first_met = list(dict.fromkeys(enumeration.child.tolist()))
    assert first_met == list(range(2, len(enumeration.states)))


@pytest.mark.parametrize("rooted", [True, False])
def test_terminal_probabilities_sum_to_one(rooted):
    instances = Instances.of_graphs([random_graph(8, 0.3, seed) for seed in range(3)])
    start = instances.ptr[:-1] if rooted else None
    enumeration = enumerate_subgraphs(instances, torch.arange(3), start, 5)
    policy = AdditivePolicy(3, 5)
    probability = terminal_distribution(enumeration, policy, policy.encode(instances, instances.x)).exp()
    torch.testing.assert_close(segment_sum(probability, enumeration.root, 3), torch.ones(3, dtype=torch.double))
    assert float(probability[enumeration.states.size == 0].sum()) == 0


class UniformPolicy(AdditivePolicy):
    """All flows equal, so that terminal probabilities can be worked out on paper."""

    def log_flows(self, encoding, states):
        return torch.zeros(states.frontier.numel()), torch.zeros(len(states))


def test_terminal_probabilities_of_a_triangle_by_hand():
    instances = Instances.of_graphs([cycle(3)])
    enumeration = enumerate_subgraphs(instances, torch.tensor([0]), torch.tensor([0]), 3)
    policy = UniformPolicy(3, 3)
    probability = terminal_distribution(enumeration, policy, None).exp()
    # {0}: stop, 1 or 2, a third each. {0,1}: stop or 2, a half each. {0,1,2}: from both, certainly stops.
    expected = {1: [1 / 3], 2: [1 / 6, 1 / 6], 3: [1 / 3]}
    for size, values in expected.items():
        assert probability[enumeration.states.size == size].tolist() == pytest.approx(values)
    node, edge = exact_marginals(enumeration, probability.log())
    assert node.tolist() == pytest.approx([1, 1 / 2, 1 / 2])
    # Edge 0-1 is inside {0,1} and {0,1,2}; edge 1-2 inside the latter only.
    assert sorted(edge.tolist()) == pytest.approx([1 / 3, 1 / 3, 1 / 2, 1 / 2, 1 / 2, 1 / 2])


def test_total_variation_by_hand():
    instances = Instances.of_graphs([path(2)])
    enumeration = enumerate_subgraphs(instances, torch.tensor([0]), torch.tensor([0]), 2)
    p, q = torch.tensor([0.25, 0.75]).log(), torch.tensor([0.5, 0.5]).log()
    assert float(total_variation(enumeration, p, q)) == pytest.approx(0.25)
    assert float(total_variation(enumeration, p, p)) == 0


def test_normalize_leaves_out_empty_states():
    instances = Instances.of_graphs([path(2)])
    enumeration = enumerate_subgraphs(instances, torch.tensor([0]), None, 2)
    log_probability = enumeration.normalize(torch.zeros(4))
    assert log_probability.exp().tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])


def test_too_many_subgraphs_are_refused():
    instances = Instances.of_graphs([random_graph(30, 0.5, 0)])
    with pytest.raises(EnumerationError, match="more than 1000 connected subgraphs"):
        enumerate_subgraphs(instances, torch.tensor([0]), torch.tensor([0]), 8, limit=1000)
