"""Neighbours and steps in flat graphs, held against networkx."""

import networkx as nx
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gflowexplainer.graphs.flat_graphs import FlatGraphs
from gflowexplainer.graphs.instances import Instances

NUMBER = 7
NODE = st.integers(0, NUMBER - 1)
EDGES = st.lists(st.tuples(NODE, NODE), max_size=16)
"""Edges of directed graphs with self loops, duplicates, isolated nodes and several components."""


def twice(edges: list[tuple[int, int]]) -> tuple[FlatGraphs, nx.Graph]:
    """The same graph twice behind each other, and the undirected simple graph under both."""
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    graph = Data(x=torch.ones(NUMBER, 1), edge_index=edge_index)
    simple = nx.Graph()
    simple.add_nodes_from(range(2 * NUMBER))
    simple.add_edges_from((u + first, v + first) for first in (0, NUMBER) for u, v in edges if u != v)
    return Instances.of_graphs([graph, graph]), simple


@settings(deadline=None, max_examples=40)
@given(EDGES)
def test_neighbors_are_the_undirected_simple_graph(edges: list[tuple[int, int]]) -> None:
    graphs, simple = twice(edges)
    owner, neighbor = graphs.neighbors_of(torch.arange(graphs.num_nodes))
    for node in range(graphs.num_nodes):
        assert neighbor[owner == node].tolist() == sorted(simple[node])
    assert graphs.degree.tolist() == [degree for _, degree in simple.degree()]
    assert graphs.owner.tolist() == [0] * NUMBER + [1] * NUMBER


@settings(deadline=None, max_examples=40)
@given(EDGES, NODE, st.sampled_from([1, 2, 3, 4, 12]))
def test_hops_are_networkx_distances(edges: list[tuple[int, int]], node: int, limit: int) -> None:
    graphs, simple = twice(edges)
    distance = nx.single_source_shortest_path_length(simple, NUMBER + node, cutoff=limit - 1)
    hops = graphs.hops_from(torch.tensor([-1, NUMBER + node]), limit)
    assert hops.tolist() == [distance.get(other, -1) for other in range(2 * NUMBER)]
