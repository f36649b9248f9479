"""Cutting by NumPy beside cutting by torch."""

import pytest
import torch
from torch_geometric.utils import k_hop_subgraph

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.cpu_cut import cut_nodes
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import random_graph

FIELDS = ("ptr", "node_id", "center", "graph", "edge_ptr", "edge_index", "edge_id", "neighbor_ptr", "neighbor", "key")
FOUND = ("owner", "node_counts", "edge_counts", "degree", "neighbor_row", "neighbor_key", "own_key")


def messy():
    """Makes a graph with directed and repeated edges and self loops, in no order."""
    data = random_graph(40, 0.06, 1)
    torch.manual_seed(0)
    more = torch.randint(0, 40, (2, 30))
    edges = torch.cat([data.edge_index, more, more[:, :5]], dim=1)
    return data.x, edges[:, torch.randperm(edges.size(1))]


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
@pytest.mark.parametrize("nodes", [[7], [3, 3, 0, 39], list(range(40))])
def test_the_same_instances_as_by_torch(hops, nodes):
    x, edges = messy()
    index, weight = GraphIndex.build(edges, 40), torch.arange(edges.size(1))
    given = {"edge_weight": weight, "other": torch.arange(40), "scale": 2.0}
    wanted = Instances.cut(x, index, torch.tensor(nodes), hops, limit=100, **given)
    found = cut_nodes(x, index, torch.tensor(nodes), hops, limit=100, kinds=(2, 3), arguments=given)
    assert (found.num_types, found.num_relations) == (2, 3)
    assert (found.surroundings is None) == (wanted.surroundings is None)
    for name in (*FIELDS, "x", *FOUND):
        assert torch.equal(getattr(found, name), getattr(wanted, name)), name
    assert torch.equal(found.edge_arguments["edge_weight"], wanted.edge_arguments["edge_weight"])
    assert torch.equal(found.node_arguments["other"], wanted.node_arguments["other"])
    if wanted.surroundings is not None:
        assert torch.equal(found.place_outside, wanted.place_outside)
        for name in (*FIELDS, "x"):
            assert torch.equal(getattr(found.surroundings, name), getattr(wanted.surroundings, name)), name
    subset = k_hop_subgraph(nodes[0], hops, edges, num_nodes=40)[0]
    assert found.node_id[: int(found.ptr[1])].tolist() == subset.tolist()


def test_beyond_the_bound_relevance_decides():
    x, edges = messy()
    index = GraphIndex.build(edges, 40)
    wanted = Instances.cut(x, index, torch.tensor([7, 8]), 3, limit=6)
    found = cut_nodes(x, index, torch.tensor([7, 8]), 3, limit=6, arguments={})
    assert found.node_id.tolist() == wanted.node_id.tolist()
    assert found.left_out.tolist() == wanted.left_out.tolist()
    # The instance fits, and what surrounds it does not.
    size = int(cut_nodes(x, index, torch.tensor([7]), 1, arguments={}).node_counts)
    assert cut_nodes(x, index, torch.tensor([7]), 1, limit=size, arguments={}).left_out is not None


def test_features_that_are_no_numbers_are_refused():
    x, edges = messy()
    x[7, 0] = torch.nan
    with pytest.raises(InstanceError, match="node 7"):
        cut_nodes(x, GraphIndex.build(edges, 40), torch.tensor([7]), 1, arguments={})


def test_wide_features_are_not_copied(monkeypatch):
    x, edges = messy()
    index, nodes = GraphIndex.build(edges, 40), torch.tensor([7, 3])
    narrow = cut_nodes(x, index, nodes, 2, arguments={})
    monkeypatch.setattr("gflowexplainer.graphs.cpu_cut.WIDE", 2)
    wide = cut_nodes(x, index, nodes, 2, arguments={})
    assert wide.x.data_ptr() == x.data_ptr()
    assert torch.equal(wide.rows(), narrow.x)
    for one, other in ((wide, narrow), (wide.surroundings, narrow.surroundings)):
        second = torch.tensor([1])
        assert torch.equal(one.select(second).rows(), other.select(second).rows())
        assert torch.equal(one.rows(torch.tensor([4, 0])), other.x[[4, 0]])
    x[7, 0] = torch.nan
    with pytest.raises(InstanceError, match="node 7"):
        cut_nodes(x, index, nodes, 1, arguments={})
