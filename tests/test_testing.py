"""The toys: right shapes, fixed by their seed, global random state left alone."""

from collections.abc import Callable

import networkx as nx
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.utils import is_undirected, to_networkx

from gflowexplainer.testing import (
    EdgeFeatureModel,
    GraphModel,
    NodeModel,
    cycle,
    graph_of,
    house,
    path,
    random_graph,
    star,
)

HOUSE = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)])


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (path, nx.path_graph(4)),
        (lambda: path(1), nx.path_graph(1)),
        (cycle, nx.cycle_graph(5)),
        (star, nx.star_graph(5)),
        (house, HOUSE),
        (lambda: graph_of([], 3), nx.empty_graph(3)),
        (lambda: graph_of([(0, 2), (2, 0), (0, 2)]), nx.Graph({0: [2], 1: [], 2: [0]})),
    ],
)
def test_graphs_have_the_shape_they_are_named_for(make: Callable[[], Data], wanted: nx.Graph) -> None:
    graph = make()
    assert graph.num_nodes == wanted.number_of_nodes()
    assert is_undirected(graph.edge_index)
    assert graph.num_edges == 2 * wanted.number_of_edges()
    assert {tuple(edge) for edge in graph.edge_index.t().tolist()} == {
        edge for u, v in wanted.edges for edge in ((u, v), (v, u))
    }


@pytest.mark.parametrize("seed", range(5))
def test_random_graph_is_connected_and_fixed_by_its_seed(seed: int) -> None:
    graph, again, other = random_graph(seed=seed), random_graph(seed=seed), random_graph(seed=seed + 1)
    assert nx.is_connected(to_networkx(graph, to_undirected=True))
    assert graph.edge_index.equal(again.edge_index)
    assert graph.x.equal(again.x)
    assert not graph.x.equal(other.x)


@pytest.mark.parametrize("make", [random_graph, house, NodeModel, GraphModel, EdgeFeatureModel])
def test_global_random_state_is_left_alone(make: Callable[[], object]) -> None:
    before = torch.random.get_rng_state()
    make()
    assert torch.random.get_rng_state().equal(before)


@pytest.mark.parametrize("kind", [NodeModel, GraphModel, EdgeFeatureModel])
def test_seed_fixes_the_weights(kind: Callable[..., nn.Module]) -> None:
    one, again, other = kind(seed=1).state_dict(), kind(seed=1).state_dict(), kind(seed=2).state_dict()
    assert all(one[name].equal(again[name]) for name in one)
    assert not all(one[name].equal(other[name]) for name in one)


def test_models_answer_with_one_row_a_node_or_graph() -> None:
    graphs = [house(), path(3)]
    for graph in graphs:
        graph.edge_attr = torch.ones(graph.num_edges, 2)
    batch = Batch.from_data_list(graphs)
    assert NodeModel(num_classes=4)(batch.x, batch.edge_index).shape == (8, 4)
    assert GraphModel()(batch.x, batch.edge_index, batch.batch).shape == (2, 2)
    assert EdgeFeatureModel()(batch.x, batch.edge_index, batch.edge_attr, batch.batch).shape == (2, 1)


@pytest.mark.parametrize("kind", [GraphModel, EdgeFeatureModel])
def test_graph_models_need_no_batch_for_one_graph(kind: Callable[..., nn.Module]) -> None:
    graph = house()
    inputs = [graph.x, graph.edge_index]
    if kind is EdgeFeatureModel:
        inputs.append(torch.ones(graph.num_edges, 2))
    model = kind()
    assert torch.equal(model(*inputs), model(*inputs, batch=torch.zeros(5, dtype=torch.long)))
