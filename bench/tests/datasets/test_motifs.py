import networkx as nx
import pytest

from gflowbench.datasets.motifs import Motif, cycle, grid, house


@pytest.mark.parametrize(
    ("motif", "truth"),
    [(house(), nx.house_graph()), (cycle(6), nx.cycle_graph(6)), (grid(), nx.grid_2d_graph(3, 3))],
)
def test_motifs_have_their_shape(motif: Motif, truth: nx.Graph) -> None:
    assert nx.is_isomorphic(nx.Graph(motif.edges.tolist()), truth)
    assert len(motif.edges) == truth.number_of_edges()
    assert motif.size == truth.number_of_nodes()


def test_house_labels_are_roles() -> None:
    # The roof is the node of degree 2 in the triangle; the floor is the two other nodes of degree 2.
    graph = nx.Graph(house().edges.tolist())
    roof = [node for node in graph if graph.degree[node] == 2 and nx.triangles(graph, node)]
    floor = [node for node in graph if graph.degree[node] == 2 and not nx.triangles(graph, node)]
    labels = house().labels
    assert labels[roof].tolist() == [3]
    assert labels[floor].tolist() == [2, 2]
    assert sorted(labels.tolist()) == [1, 1, 2, 2, 3]
