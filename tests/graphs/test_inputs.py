"""Graphs as handed over: taken apart, and refused without being read."""

import pytest
import torch

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.inputs import DeferredList, input_graph, without_batch
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house


def union():
    one, other = house(), cycle(4)
    edges = torch.cat([one.edge_index, other.edge_index + 5], dim=1)
    return torch.cat([one.x, other.x]), edges, torch.tensor([0] * 5 + [1] * 4)


def test_a_union_is_taken_apart():
    x, edges, batch = union()
    weight = torch.arange(edges.size(1)).float()
    parts = without_batch(input_graph(x, edges, {"batch": batch, "edge_weight": weight}, GraphModel()))
    for part, whole in zip(parts, (house(), cycle(4)), strict=True):
        assert torch.equal(part.x, whole.x)
        assert torch.equal(part.edge_index, whole.edge_index)
        assert torch.equal(part.arguments["edge_weight"], weight[part.edges])
        assert torch.equal(x[part.nodes], part.x)
        assert "batch" in part.shown.arguments


def test_a_union_with_edges_to_nowhere():
    x, edges, batch = union()
    edges[0, 3] = 99
    with pytest.raises(InstanceError, match="names node 99"):
        without_batch(input_graph(x, edges, {"batch": batch}, GraphModel()))


def test_nothing_is_read():
    """Tensors without any content pass, so that a graph of any size is taken at no cost."""
    x, edges = torch.empty(10**9, 16, device="meta"), torch.empty(2, 10**10, dtype=torch.long, device="meta")
    graph = input_graph(x, edges, {}, NodeModel().to("meta"))
    assert graph.detached().x.size(0) == 10**9


def test_items_of_a_list_are_computed_whenever_they_are_asked_for():
    calls = []
    squares = DeferredList(5, lambda place: calls.append(place) or place * place)
    assert len(squares) == 5
    assert calls == []
    assert squares[3] == 9
    assert squares[-1] == 16
    assert squares[1:3] == [1, 4]
    assert calls == [3, 4, 1, 2]
    assert list(squares) == [0, 1, 4, 9, 16]
    with pytest.raises(IndexError):
        squares[5]
