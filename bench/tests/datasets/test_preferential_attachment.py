import networkx as nx
import numpy as np
import pytest

from gflowbench.datasets.preferential_attachment import preferential_attachment


@pytest.mark.parametrize(("nodes", "edges_per_node"), [(2, 1), (20, 1), (6, 5), (7, 5), (300, 5), (1000, 3)])
def test_graphs_are_simple_connected_and_have_all_edges(nodes: int, edges_per_node: int) -> None:
    copies = preferential_attachment(nodes, edges_per_node, np.random.default_rng(0), copies=5)
    assert copies.shape == (5, (nodes - edges_per_node) * edges_per_node, 2)
    for edges in copies:
        assert (edges[:, 0] > edges[:, 1]).all()
        graph = nx.Graph(edges.tolist())
        assert graph.number_of_edges() == len(edges)
        assert graph.number_of_nodes() == nodes
        assert nx.is_connected(graph)


def test_degrees_are_distributed_as_in_networkx() -> None:
    def summary(degrees: np.ndarray) -> list[float]:
        return [degrees.max(), (degrees >= 10).mean(), (degrees >= 20).mean(), (degrees == 5).mean()]

    copies = 150
    ours = preferential_attachment(300, 5, np.random.default_rng(0), copies=copies)
    found = np.array([summary(np.bincount(edges.reshape(-1))) for edges in ours])
    truth = np.array(
        [summary(np.array([d for _, d in nx.barabasi_albert_graph(300, 5, seed=i).degree])) for i in range(copies)]
    )
    error = np.sqrt((found.var(axis=0) + truth.var(axis=0)) / copies)
    assert (np.abs(found.mean(axis=0) - truth.mean(axis=0)) < 4 * error).all()


def test_choice_follows_degree_exactly_on_four_nodes() -> None:
    # One edge a node: node 2 meets degrees 1 and 1, node 3 then meets one node of degree 2 and two of 1.
    edges = preferential_attachment(4, 1, np.random.default_rng(0), copies=40_000)
    second, third = edges[:, 1, 1], edges[:, 2, 1]
    assert abs((second == 0).mean() - 1 / 2) < 0.01
    assert abs((third == second).mean() - 1 / 2) < 0.01
    assert abs((third == 2).mean() - 1 / 4) < 0.01


def test_seed_decides() -> None:
    first, again, other = (preferential_attachment(50, 3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
