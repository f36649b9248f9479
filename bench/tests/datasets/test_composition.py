import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.utils import contains_self_loops, is_undirected

from gflowbench.datasets.composition import add_noise, attach, attach_each
from gflowbench.datasets.motifs import cycle, house

PATH = np.array([[0, 1], [1, 2], [2, 3]])


def test_two_triangles_on_a_path() -> None:
    data = attach(PATH, 4, cycle(3), np.array([0, 2])).to_data()
    expected = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (4, 6), (5, 6), (2, 7), (7, 8), (7, 9), (8, 9)]
    edges = [tuple(edge) for edge in data.edge_index.t().tolist()]
    assert edges == sorted(expected + [(b, a) for a, b in expected])
    assert data.motif_id.tolist() == [-1] * 4 + [0] * 3 + [1] * 3
    assert data.y.tolist() == [0] * 4 + [1] * 6
    marked = {edge for edge, mark in zip(edges, data.edge_motif.tolist(), strict=True) if mark}
    assert marked == {(a, b) for a, b in edges if min(a, b) >= 4}


def test_many_bases_at_once_give_what_each_gives_alone() -> None:
    bases = np.stack([PATH, np.array([[0, 1], [0, 2], [0, 3]])])
    anchors = np.array([3, 1])
    for together, base, anchor in zip(attach_each(bases, 4, house(), anchors), bases, anchors, strict=True):
        alone = attach(base, 4, house(), np.array([anchor])).to_data()
        for key in ("edge_index", "edge_motif", "motif_id"):
            assert torch.equal(together[key], alone[key])


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_noise_is_new_and_outside_motifs(share: float) -> None:
    graph = attach(PATH, 4, cycle(6), np.array([0, 1, 2]))
    before = len(graph.edges)
    add_noise(graph, share, np.random.default_rng(0))
    assert len(graph.edges) == before + int(share * before)
    assert len({tuple(edge) for edge in graph.edges.tolist()}) == len(graph.edges)
    data = graph.to_data()
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    source, target = data.edge_index
    inside = (data.motif_id[source] >= 0) & (data.motif_id[source] == data.motif_id[target])
    assert torch.equal(inside, data.edge_motif)
    assert nx.is_connected(nx.Graph(graph.edges.tolist()))
