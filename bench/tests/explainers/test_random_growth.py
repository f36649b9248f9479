from collections import Counter

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gflowbench.explainers.random_growth import breadth_first, grow
from gflowexplainer.graphs.instances import Instances


def as_data(graph: nx.Graph) -> Data:
    edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).t()
    return Data(x=torch.ones(len(graph), 1), edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def random_graphs(seed: int, count: int = 3) -> list[nx.Graph]:
    return [nx.gnp_random_graph(4 + 3 * i, 0.3, seed=seed + i) for i in range(count)]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), max_nodes=st.integers(1, 6))
def test_grown_subgraphs_are_connected_and_as_large_as_possible(seed, max_nodes):
    graphs = random_graphs(seed)
    instances = Instances.of_graphs([as_data(graph) for graph in graphs])
    instance = torch.arange(3).repeat(4)
    draw = torch.arange(4).repeat_interleave(3)
    subgraphs = grow(instances, instance, draw, max_nodes, seed)
    for number, members in zip(instance.tolist(), subgraphs.members.tolist(), strict=True):
        nodes = [m - int(instances.ptr[number]) for m in members if m >= 0]
        assert len(set(nodes)) == len(nodes)
        assert nx.is_connected(graphs[number].subgraph(nodes))
        component = nx.node_connected_component(graphs[number], nodes[0])
        assert len(nodes) == min(max_nodes, len(component))


def test_every_neighbour_has_the_same_chance():
    # A star with a tail: from the hub 0 the first pick is 1, 2 or 3; after 3, its tail 4 joins the choice.
    star = nx.Graph([(0, 1), (0, 2), (0, 3), (3, 4)])
    instances = Instances.around_nodes(torch.ones(5, 1), as_data(star).edge_index, [0], 2)
    draws = 20_000
    members = grow(instances, torch.zeros(draws, dtype=torch.long), torch.arange(draws), 3, seed=0).members
    pairs = Counter(map(frozenset, members[:, 1:].tolist()))
    # {1, 2} by 1 or 2 first, {1, 3} by 1 first or by 3, of whose three neighbours 1 is one.
    expected = {(1, 2): 1 / 3, (1, 3): 1 / 6 + 1 / 9, (2, 3): 1 / 6 + 1 / 9, (3, 4): 1 / 9}
    assert {frozenset(pair) for pair in expected} == set(pairs)
    for pair, share in expected.items():
        assert pairs[frozenset(pair)] / draws == pytest.approx(share, abs=0.012)


@pytest.mark.parametrize("seed", range(5))
def test_breadth_first_lists_the_nearest_nodes(seed):
    graphs = random_graphs(seed)
    instances = Instances.of_graphs([as_data(graph) for graph in graphs])
    order = breadth_first(instances, 5, seed)
    for number, graph in enumerate(graphs):
        nodes = [m - int(instances.ptr[number]) for m in order[number].tolist() if m >= 0]
        distance = nx.single_source_shortest_path_length(graph, nodes[0])
        assert [distance[node] for node in nodes] == sorted(distance.values())[:5]
