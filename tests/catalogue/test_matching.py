"""Motifs in larger graphs, against networkx."""

import networkx as nx
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

from gflowexplainer.catalogue.matching import LabelledGraph, holds


def labelled(graph):
    return LabelledGraph([""] * len(graph), [dict.fromkeys(graph[node], "") for node in range(len(graph))])


@pytest.mark.parametrize("seed", range(8))
def test_the_same_motifs_are_found_as_by_networkx(seed):
    whole = nx.convert_node_labels_to_integers(nx.barabasi_albert_graph(14, 1 + seed % 2, seed=seed))
    for other in range(6):
        part = nx.convert_node_labels_to_integers(nx.barabasi_albert_graph(5 + other % 3, 1, seed=100 + other))
        motif = labelled(part).form(range(len(part)))
        assert holds(labelled(whole), motif) == GraphMatcher(whole, part).subgraph_is_isomorphic()
        for node in (0, 7):
            at = any(node in found for found in GraphMatcher(whole, part).subgraph_isomorphisms_iter())
            assert holds(labelled(whole), motif, at=node) == at


@pytest.mark.parametrize("seed", range(6))
def test_labels_of_nodes_and_edges_are_compared_as_by_networkx(seed):
    def coloured(graph):
        labels = [str(node % 3) for node in graph]
        for u, v in graph.edges:
            graph.edges[u, v]["label"] = str((u + v) % 2)
        nx.set_node_attributes(graph, dict(enumerate(labels)), "label")
        around = [{v: graph.edges[u, v]["label"] for v in graph[u]} for u in range(len(graph))]
        return LabelledGraph(labels, around)

    whole = nx.gnp_random_graph(12, 0.3, seed=seed)
    graph, found = coloured(whole), []
    for other in range(12):
        part = nx.barabasi_albert_graph(4, 1 + other % 2, seed=100 + other)
        motif = coloured(part)
        alike = {kind: nx.isomorphism.categorical_node_match("label", "") for kind in ("node_match", "edge_match")}
        found.append(GraphMatcher(whole, part, **alike).subgraph_is_isomorphic())
        assert holds(graph, motif.form(range(len(part)))) == found[-1]
    # Parts of the graph itself are always there.
    assert all(holds(graph, graph.form(path)) for path in nx.single_source_shortest_path(whole, 0, 3).values())


def star_graph(leaves, tails):
    """A hub, node 0, with leaves, some of which have a node behind them."""
    graph = nx.star_graph(leaves)
    graph.add_edges_from((leaf, leaves + 1 + place) for place, leaf in enumerate(tails))
    return labelled(graph)


def test_a_star_in_a_hub_is_not_tried_in_every_order():
    motif = star_graph(13, [13]).form(range(15))
    assert holds(star_graph(20, [20]), motif)
    assert not holds(star_graph(20, []), motif)
    assert holds(star_graph(20, [20]), motif, at=20)
    assert not holds(star_graph(12, [12]), motif)
