import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gflowbench.paper.growth_times import grown_graph
from gflowbench.paper.plain_cut_vertices import GrowingCutVertices, tarjan


@given(st.integers(1, 14), st.floats(0, 0.5), st.integers(0, 2**31))
def test_every_state_of_a_growth_has_the_cut_vertices_that_networkx_finds(nodes, density, seed):
    adjacent = grown_graph(nodes, density, np.random.default_rng(seed))
    assert np.array_equal(adjacent, adjacent.T)
    growing = GrowingCutVertices()
    for size in range(1, nodes + 1):
        growing.add(np.flatnonzero(adjacent[size - 1, : size - 1]).tolist())
        graph = nx.from_numpy_array(adjacent[:size, :size])
        assert nx.is_connected(graph)
        expected = set(nx.articulation_points(graph))
        assert set(growing.groups) == expected
        assert tarjan([list(graph[node]) for node in range(size)]) == expected


def test_groups_are_the_components_without_the_cut_vertex():
    growing = GrowingCutVertices()
    for neighbors in ([], [0], [0], [1], [2, 3], [0]):  # a five-ring 0-1-3-4-2 with a leaf on 0
        growing.add(neighbors)
    assert growing.groups.keys() == {0}
    row = growing.groups[0]
    assert row[0] == 0
    assert row[1] == row[2] == row[3] == row[4] != row[5]


def test_the_paper_s_smallest_example():
    # Appendix, proof of Theorem 1 for t = 2: the third node hangs on the first, whose row becomes (0, 1, 2).
    growing = GrowingCutVertices()
    for neighbors in ([], [0], [0]):
        growing.add(neighbors)
    assert growing.groups == {0: [0, 1, 2]}


@pytest.mark.parametrize(("neighbors", "expected"), [([], set()), ([[]], set()), ([[1], [0, 2], [1]], {1})])
def test_small_graphs(neighbors, expected):
    assert tarjan(neighbors) == expected


def test_a_long_path_needs_no_recursion():
    length = 5000
    neighbors = [[n for n in (node - 1, node + 1) if 0 <= n < length] for node in range(length)]
    assert tarjan(neighbors) == set(range(1, length - 1))
