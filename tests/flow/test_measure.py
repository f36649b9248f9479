import math

import networkx as nx
import pytest
import torch

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.exact import enumerate_subgraphs
from gflowexplainer.flow.measure import log_growth, log_steps
from gflowexplainer.flow.sampling import grow_uniformly, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.settings import Settings
from gflowexplainer.testing import house, random_graph, star


def growth_by_hand(graph, root, max_nodes):
    """Follows every way of random growth, one probability at a time."""
    first = {frozenset([root]): 1.0} if root is not None else {frozenset([n]): 1 / len(graph) for n in graph}
    found, level = dict(first), first
    for _ in range(max_nodes - 1):
        grown = {}
        for nodes, probability in level.items():
            around = {n for member in nodes for n in graph[member]} - nodes
            for node in around:
                grown[nodes | {node}] = grown.get(nodes | {node}, 0.0) + probability / len(around)
        found |= grown
        level = grown
    return found


@pytest.mark.parametrize("root", [None, 1])
def test_growth_is_the_probability_that_random_growth_passes(root):
    graphs = [house(), star(4), random_graph(8, 0.3, 2)]
    instances = Instances.of_graphs(graphs)
    start = None if root is None else instances.ptr[:-1] + root
    enumeration = enumerate_subgraphs(instances, torch.arange(3), start, 4)
    states = enumeration.states
    measure = log_growth(states, enumeration.child, enumeration.level_ptr).exp().tolist()
    for number, graph in enumerate(graphs):
        expected = growth_by_hand(nx.Graph(graph.edge_index.t().tolist()), root, 4)
        mine = {
            frozenset(m - int(instances.ptr[number]) for m in row if m >= 0): value
            for row, value, at in zip(states.members.tolist(), measure, enumeration.root.tolist(), strict=True)
            if at == number and any(m >= 0 for m in row)
        }
        assert mine == pytest.approx(expected)


def test_steps_of_both_measures_on_a_star():
    # From the centre of a star with four leaves: 4, 3, 2 ways on; a state of k leaves has k parents.
    instances = Instances.of_graphs([star(4)])
    grown = roll_out(instances, torch.tensor([0]), torch.tensor([0]), 4, grow_uniformly)
    growth = log_steps(grown, "growth")
    uniform = log_steps(grown, "uniform")
    assert growth.tolist() == pytest.approx([-math.log(4), -math.log(3), -math.log(2), 0])
    assert uniform.tolist() == pytest.approx([0, -math.log(2), -math.log(3), 0])


@pytest.mark.parametrize(
    "changes", [{"objective": "flow_matching"}, {"objective": "raw_flow_matching"}, {"parents": "sequence"}]
)
def test_growth_is_refused_where_parents_decide(changes):
    with pytest.raises(ConfigError, match="measure='uniform'"):
        Settings(**changes)
    Settings(measure="uniform", **changes)
