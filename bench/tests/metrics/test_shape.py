import math

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gflowbench.metrics.shape import connectivity, is_connected, size, sparsity, stability
from gflowexplainer.graphs.instances import Instances


def instances_of(graphs):
    data = []
    for graph in graphs:
        edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).t()
        data.append(Data(x=torch.ones(len(graph), 1), edge_index=torch.cat([edges, edges.flip(0)], dim=1)))
    return Instances.of_graphs(data)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_connectivity_is_networkx(seed):
    graphs = [nx.gnp_random_graph(2 + 2 * i, 0.4, seed=seed + i) for i in range(4)]
    instances = instances_of(graphs)
    chosen = torch.rand(instances.num_nodes, generator=torch.Generator().manual_seed(seed)) < 0.5
    found = is_connected(instances, chosen).tolist()
    for number, graph in enumerate(graphs):
        begin, end = instances.ptr[number : number + 2].tolist()
        nodes = torch.nonzero(chosen[begin:end]).flatten().tolist()
        assert found[number] == (bool(nodes) and nx.is_connected(graph.subgraph(nodes)))


def test_size_and_sparsity_by_hand():
    instances = instances_of([nx.path_graph(4), nx.path_graph(2)])
    chosen = torch.tensor([True, False, True, True, True, False])
    assert size(instances, chosen) == 2.0
    assert sparsity(instances, chosen) == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert connectivity(instances, chosen) == 0.5


def test_stability_by_hand():
    ptr = torch.tensor([0, 3, 5])
    one = torch.tensor([True, True, False, False, False])
    two = torch.tensor([True, False, True, False, False])
    # Instance 0: Jaccard 1/3; instance 1 is empty twice and agrees.
    assert stability(ptr, torch.stack([one, two])) == pytest.approx((1 / 3 + 1) / 2)
    assert stability(ptr, torch.stack([one, one, one])) == 1.0
    assert stability(ptr, torch.stack([one, two, one])) == pytest.approx((1 + 2 * (1 / 3 + 1) / 2) / 3)
    assert math.isnan(stability(ptr, one[None]))
