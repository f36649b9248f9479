"""Batches of node sets, held against networkx and plain loops."""

from itertools import combinations

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import (
    TOO_SMALL,
    Subgraphs,
    edge_values,
    inner_edges,
    inner_neighbors,
    marginals,
    place_keys,
    size_penalty,
    subgraph_keys,
)
from gflowexplainer.testing import cycle, house, path

WIDTH = 4


@st.composite
def batches(draw: st.DrawFn) -> tuple[Instances, Subgraphs]:
    """Two directed graphs with self loops and duplicates, and node sets inside them, in any order."""
    graphs = []
    for _ in range(2):
        number = draw(st.integers(1, 6))
        node = st.integers(0, number - 1)
        edges = draw(st.lists(st.tuples(node, node), max_size=12))
        edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
        graphs.append(Data(x=torch.zeros(number, 1), edge_index=edge_index))
    instances = Instances.of_graphs(graphs)
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        instance = draw(st.integers(0, 1))
        first, last = instances.ptr[instance : instance + 2].tolist()
        rows.append((instance, draw(st.lists(st.integers(first, last - 1), unique=True, max_size=WIDTH))))
    return instances, subgraphs_of(rows)


def subgraphs_of(rows: list[tuple[int, list[int]]], width: int = WIDTH) -> Subgraphs:
    members = [nodes + [-1] * (width - len(nodes)) for _, nodes in rows]
    return Subgraphs(torch.tensor([instance for instance, _ in rows]), torch.tensor(members))


def simple_graph(instances: Instances) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(instances.num_nodes))
    graph.add_edges_from((u, v) for u, v in instances.edge_index.t().tolist() if u != v)
    return graph


def member_sets(subgraphs: Subgraphs) -> list[set[int]]:
    return [{node for node in row if node >= 0} for row in subgraphs.members.tolist()]


@settings(deadline=None, max_examples=40)
@given(batches())
def test_inner_neighbors_are_the_induced_edges(batch: tuple[Instances, Subgraphs]) -> None:
    instances, subgraphs = batch
    adjacent, inner = inner_neighbors(instances, subgraphs), inner_edges(instances, subgraphs)
    graph = simple_graph(instances)
    for row, members in enumerate(subgraphs.members.tolist()):
        wanted = [[u >= 0 and v >= 0 and graph.has_edge(u, v) for v in members] for u in members]
        assert adjacent[row].tolist() == wanted
        pairs = [(i, j) for i, j in torch.nonzero(adjacent[row]).tolist() if i < j]
        own = inner.subgraph == row
        assert list(zip(inner.one[own].tolist(), inner.other[own].tolist(), strict=True)) == pairs
        for (i, j), entry in zip(pairs, inner.entry[own].tolist(), strict=True):
            assert instances.neighbor[entry] == members[j]
            assert instances.neighbor_ptr[members[i]] <= entry < instances.neighbor_ptr[members[i] + 1]


@settings(deadline=None, max_examples=40)
@given(batches())
def test_marginals_are_sums_over_subgraphs(batch: tuple[Instances, Subgraphs]) -> None:
    instances, subgraphs = batch
    weight = torch.arange(1.0, len(subgraphs) + 1)
    node, neighbor = marginals(instances, subgraphs, weight)
    edge = edge_values(instances, neighbor)
    sets = member_sets(subgraphs)
    assert node.tolist() == [
        sum(w for w, s in zip(weight.tolist(), sets, strict=True) if v in s) for v in range(instances.num_nodes)
    ]
    assert edge.tolist() == [
        sum(w for w, s in zip(weight.tolist(), sets, strict=True) if u != v and {u, v} <= s)
        for u, v in instances.edge_index.t().tolist()
    ]


def test_edge_values_without_any_neighbor() -> None:
    loops = Instances.of_graphs([Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0, 1], [0, 1]]))])
    assert edge_values(loops, torch.empty(0)).tolist() == [0.0, 0.0]


@settings(deadline=None, max_examples=40)
@given(batches(), st.randoms(use_true_random=False))
def test_keys_do_not_depend_on_the_order(batch: tuple[Instances, Subgraphs], random: object) -> None:
    instances, subgraphs = batch
    rows = [list(row) for row in subgraphs.members.tolist()]
    for row in rows:
        random.shuffle(row)  # type: ignore[attr-defined]
    shuffled = Subgraphs(subgraphs.instance, torch.tensor(rows))
    assert torch.equal(subgraph_keys(instances, subgraphs), subgraph_keys(instances, shuffled))


def test_keys_tell_all_sets_apart() -> None:
    instances = Instances.of_graphs([cycle(6), path(6)])
    rows = [
        (instance, [6 * instance + i for i in nodes])
        for instance in range(2)
        for size in range(7)
        for nodes in combinations(range(6), size)
    ]
    keys = subgraph_keys(instances, subgraphs_of(rows, 6))
    assert torch.unique(keys).numel() == 2 * 2**6


def test_keys_tell_instances_of_one_graph_apart() -> None:
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 1], 3)
    # Nodes 0, 1 and 2 of the user, once explaining node 0 and once node 1.
    same = subgraphs_of([(0, [0, 1, 2]), (1, [5, 6, 7])])
    assert subgraph_keys(instances, same).unique().numel() == 2


def test_keys_tell_apart_which_of_two_nodes_is_explained_and_which_is_shown() -> None:
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 1], 3)
    # Node 1 where node 0 is explained, and node 0 where node 1 is.
    crossed = subgraphs_of([(0, [1, 2]), (1, [5, 7])])
    assert subgraph_keys(instances, crossed).unique().numel() == 2


def test_keys_do_not_depend_on_the_batch() -> None:
    graph = house()
    both = Instances.around_nodes(graph.x, graph.edge_index, [0, 1], 3)
    alone = both.select(torch.tensor([1]))
    assert both.own_key[1:].equal(alone.own_key)
    assert subgraph_keys(both, subgraphs_of([(1, [6, 7])])).equal(subgraph_keys(alone, subgraphs_of([(0, [1, 2])])))


def test_an_instance_that_is_there_twice_is_told_apart_by_its_place() -> None:
    graph = house()
    twice = Instances.around_nodes(graph.x, graph.edge_index, [2, 2], 3)
    same = subgraphs_of([(0, [0, 1, 2]), (1, [5, 6, 7]), (0, [2, 0, 1])])
    assert subgraph_keys(twice, same).unique().numel() == 1
    first, second, again = place_keys(twice, same).tolist()
    assert first == again != second


def test_a_node_is_one_addition() -> None:
    instances = Instances.of_graphs([house()])
    keys = subgraph_keys(instances, subgraphs_of([(0, [0, 1]), (0, [0, 1, 4])]))
    assert keys[1] - keys[0] == instances.key[4]


def test_lists_are_filled_up() -> None:
    found = Subgraphs.of_lists([1, 0, 1], [[4, 2], [], [7]], torch.device("cpu"))
    assert found.instance.tolist() == [1, 0, 1]
    assert found.members.tolist() == [[4, 2], [-1, -1], [7, -1]]
    assert Subgraphs.of_lists([0], [[3]], torch.device("cpu"), 3).members.tolist() == [[3, -1, -1]]
    assert Subgraphs.of_lists([0], [[]], torch.device("cpu")).members.dtype == torch.long


def test_size_rows_and_joining() -> None:
    subgraphs = subgraphs_of([(0, [2, 1]), (1, []), (0, [0])])
    assert len(subgraphs) == 3
    assert subgraphs.size.tolist() == [2, 0, 1]
    assert subgraphs.filled.sum() == 3
    turned = subgraphs[torch.tensor([2, 0])]
    assert turned.members[:, 0].tolist() == [0, 2]
    both = Subgraphs.cat([turned, subgraphs])
    assert both.instance.tolist() == [0, 0, 0, 1, 0]
    assert both.members.equal(torch.cat([turned.members, subgraphs.members]))


@pytest.mark.parametrize(
    ("size", "can_grow", "wanted"), [(1, True, TOO_SMALL), (1, False, 0.0), (2, True, 0.0), (3, True, 0.0)]
)
def test_size_penalty(size: int, can_grow: bool, wanted: float) -> None:
    assert size_penalty(torch.tensor([size]), torch.tensor([can_grow]), 2).tolist() == [wanted]
