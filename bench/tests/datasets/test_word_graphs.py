import networkx as nx
from torch_geometric.utils import is_undirected

from gflowbench.datasets.word_graphs import heads_to_edges, window_edges


def test_window_by_hand() -> None:
    assert window_edges(3, 1).t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert window_edges(1, 2).shape == (2, 0)
    for length in (2, 5, 9):
        graph = nx.Graph(window_edges(length, 2).t().tolist())
        assert nx.utils.graphs_equal(graph, nx.power(nx.path_graph(length), 2))


def test_heads_by_hand() -> None:
    # "it 's bad . avoid": the roots "bad" (2) and "avoid" (4) are chained.
    edges = heads_to_edges([2, 2, 2, 2, 4])
    assert is_undirected(edges)
    graph = nx.Graph(edges.t().tolist())
    assert {frozenset(edge) for edge in graph.edges} == {frozenset(e) for e in [(0, 2), (1, 2), (2, 3), (2, 4)]}
    assert nx.is_tree(graph)
    assert heads_to_edges([0]).shape == (2, 0)
