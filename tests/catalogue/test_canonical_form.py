"""Canonical forms and matching against networkx."""

import random

import networkx
import pytest
from networkx.algorithms.isomorphism import GraphMatcher, categorical_edge_match, categorical_node_match

from gflowexplainer.catalogue.canonical_form import canonical_form
from gflowexplainer.catalogue.matching import LabelledGraph, holds

NODE, EDGE = categorical_node_match("label", None), categorical_edge_match("label", None)


def random_labelled(rng, size, colours, bonds):
    graph = networkx.gnp_random_graph(size, rng.choice([0.2, 0.4, 0.7]), seed=rng.randrange(1 << 30))
    for node in graph:
        graph.nodes[node]["label"] = str(rng.randrange(colours))
    for u, v in graph.edges:
        graph.edges[u, v]["label"] = str(rng.randrange(bonds))
    return graph


def form(graph):
    nodes = sorted(graph)
    edges = {tuple(sorted(e[:2])): e[2].get("label", "") for e in graph.edges(data=True)}
    return canonical_form([graph.nodes[n].get("label", "") for n in nodes], edges)


def shuffled(graph, rng):
    order = list(graph)
    rng.shuffle(order)
    return networkx.relabel_nodes(graph, dict(zip(graph, order, strict=True)))


@pytest.mark.parametrize("colours", [1, 2])
def test_equal_exactly_where_networkx_says_isomorphic(colours):
    rng = random.Random(colours)
    graphs = [random_labelled(rng, rng.randrange(1, 6), colours, colours) for _ in range(60)]
    equal = 0
    for one in graphs:
        for other in graphs:
            same = networkx.is_isomorphic(one, other, node_match=NODE, edge_match=EDGE)
            assert (form(one) == form(other)) == same
            equal += same
    assert equal > len(graphs)


@pytest.mark.parametrize(
    "graph",
    [
        networkx.petersen_graph(),
        networkx.complete_graph(12),
        networkx.cycle_graph(12),
        networkx.hypercube_graph(3),
        networkx.complete_bipartite_graph(6, 6),
        networkx.disjoint_union(networkx.cycle_graph(6), networkx.cycle_graph(6)),
        networkx.circular_ladder_graph(8),
        networkx.grid_2d_graph(3, 4),
    ],
    ids=str,
)
def test_symmetric_graphs_in_any_order(graph):
    graph, rng = networkx.convert_node_labels_to_integers(graph), random.Random(0)
    assert len({form(shuffled(graph, rng)) for _ in range(8)}) == 1


def test_graphs_that_refinement_alone_cannot_tell_apart():
    two, one = networkx.disjoint_union(networkx.cycle_graph(3), networkx.cycle_graph(3)), networkx.cycle_graph(6)
    assert form(two) != form(one)


def test_a_motif_is_found_exactly_where_networkx_finds_it():
    rng, found = random.Random(3), 0
    for _ in range(150):
        graph = random_labelled(rng, 9, 2, 1)
        piece = random_labelled(rng, rng.randrange(1, 5), 2, 1)
        if not networkx.is_connected(piece):
            continue
        host = LabelledGraph(
            [graph.nodes[n]["label"] for n in range(9)],
            [{v: graph.edges[u, v]["label"] for v in graph[u]} for u in range(9)],
        )
        matches = list(GraphMatcher(graph, piece, node_match=NODE, edge_match=EDGE).subgraph_isomorphisms_iter())
        assert holds(host, form(piece)) == bool(matches)
        at = rng.randrange(9)
        assert holds(host, form(piece), at=at) == any(at in match for match in matches)
        inside = rng.sample(range(9), 6)
        assert holds(host, form(piece), among=inside) == any(set(match) <= set(inside) for match in matches)
        found += bool(matches)
    assert found > 10
