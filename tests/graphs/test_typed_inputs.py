"""Heterogeneous graphs as handed over: taken apart, and refused where they cannot be meant."""

import pytest
import torch

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.inputs import flat_graph
from gflowexplainer.graphs.typed_inputs import checked_graph
from gflowexplainer.graphs.typed_inputs import typed_graph as taken_apart
from gflowexplainer.testing import TypedNodeModel, typed_graph


def test_the_flat_form_is_that_of_pyg():
    graph = typed_graph()
    for key in graph.node_types:
        graph[key].x = torch.randn(graph[key].num_nodes, 2)
    flat = flat_graph(taken_apart(graph, TypedNodeModel(), {}))
    plain = graph.to_homogeneous()
    assert torch.equal(flat.edge_index, plain.edge_index)
    assert torch.equal(flat.arguments["node_type"], plain.node_type)
    assert torch.equal(flat.arguments["edge_type"], plain.edge_type)


def wrong(**changes):
    graph = typed_graph()
    x, edges = dict(graph.x_dict), dict(graph.edge_index_dict)
    key = ("paper", "in", "venue")
    if changes.get("undeclared"):
        edges["paper", "cites", "book"] = edges.pop(key)
    if changes.get("range"):
        edges[key] = edges[key] + 9
    if changes.get("name"):
        edges["in"] = edges.pop(key)
    more = {"edge_attr_dict": {("a", "b", "c"): torch.zeros(3)}} if changes.get("keys") else {}
    if changes.get("rows"):
        more = {"edge_attr_dict": {key: torch.zeros(3)}}
    if changes.get("device"):
        x["author"] = x["author"].to("meta")
    flat_graph(checked_graph(x, edges, more, TypedNodeModel()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("undeclared", "'book', of which nothing is known"),
        ("range", r"type 'paper', which has 12 nodes"),
        ("name", "A relation is named by"),
        ("keys", "edge_attr_dict' has the key"),
        ("rows", "must be a tensor with 12 rows"),
        ("device", "on meta"),
    ],
)
def test_graphs_that_cannot_be_meant_are_refused(changes, message):
    with pytest.raises(InstanceError, match=message):
        wrong(**{changes: True})
