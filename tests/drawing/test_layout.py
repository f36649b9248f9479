import networkx as nx
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from gflowexplainer.drawing.layout import layout, layout_around

GAPS = (88.0, 34.0, 20.0)


@pytest.mark.parametrize("length", [4, 5, 6, 8])
def test_a_cycle_on_a_tree_is_drawn_without_crossings(length):
    cycle = [(i, (i + 1) % length) for i in range(length)]
    edges = [
        *cycle,
        *((a + length - 1 if a else 0, b + length - 1) for a, b in [(0, 1), (1, 2), (1, 3), (2, 4), (3, 5)]),
    ]
    place = layout(length + 5, edges)

    def side(a, b, c):
        return np.sign(np.linalg.det(np.stack([place[b] - place[a], place[c] - place[a]])))

    for a, b in edges:
        for c, d in edges:
            if len({a, b, c, d}) == 4:
                assert not (side(a, b, c) != side(a, b, d) and side(c, d, a) != side(c, d, b)), (a, b, c, d)


def test_layout_keeps_distances():
    place = layout(4, [(0, 1), (1, 2), (2, 3)])
    apart = np.linalg.norm(place[:, None] - place[None], axis=2)
    assert np.allclose(apart, np.abs(np.subtract.outer(range(4), range(4))), atol=0.05)
    assert layout(1, []).shape == (1, 2)
    assert np.isfinite(layout(3, [])).all()


def test_edges_have_their_lengths():
    place = layout(3, [(0, 1), (1, 2)], [1.0, 3.0])
    assert np.linalg.norm(place[0] - place[1]) == pytest.approx(1, abs=0.02)
    assert np.linalg.norm(place[1] - place[2]) == pytest.approx(3, abs=0.02)


@pytest.mark.parametrize("graph", [nx.star_graph(400), nx.barabasi_albert_graph(1000, 2, seed=0), nx.path_graph(50)])
def test_nothing_lies_on_anything_else(graph):
    """Core, neighbours and surroundings of real sizes: each keeps the room of its level."""
    hops = nx.single_source_shortest_path_length(graph, 0)
    level = np.array([2] * len(graph))
    core = [0, *list(graph[0])[:2]]
    near = [node for node in graph if hops[node] <= 1 and node not in core][:8]
    level[near], level[core] = 1, 0
    place = layout_around(level, np.array(list(graph.edges)), GAPS, 0)
    assert np.array_equal(place[0], [0, 0])
    apart = cdist(place, place) + np.diag(np.full(len(place), np.inf))
    assert apart.min() >= GAPS[2] * 0.99
    assert apart[np.ix_(level == 0, level == 0)].min() > 0.6 * GAPS[0]
    if near:
        assert apart[np.ix_(level == 0, level == 1)].min() > 0.45 * GAPS[0]


def test_surroundings_do_not_move_the_explanation():
    graph = nx.barabasi_albert_graph(60, 2, seed=1)
    level = np.where(np.arange(60) < 4, 0, np.where(np.arange(60) < 12, 1, 2))
    edges = np.array(list(graph.edges))
    whole = layout_around(level, edges, GAPS, 0)
    part = layout_around(level[:12], edges[(edges < 12).all(axis=1)], GAPS, 0)
    assert np.allclose(whole[:12], part)


def test_other_components_find_a_place():
    level = np.array([0, 0, 2, 2, 2])
    place = layout_around(level, np.array([[0, 1], [3, 4]]), GAPS, 0)
    assert np.isfinite(place).all()
