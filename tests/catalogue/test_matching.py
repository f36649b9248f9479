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
