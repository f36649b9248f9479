"""The index of a graph: held against the edges it was built from, stored, mapped into memory."""

import numpy as np
import pytest
import torch

from gflowexplainer.errors import CheckpointError, InstanceError
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.testing import path, random_graph


@pytest.fixture
def graph():
    """Directed, with self loops, repeated edges and a node without any."""
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(0, 30, (2, 120), generator=generator)
    edges[edges == 17] = 16
    data = random_graph(30)
    data.edge_index = edges
    return data


def test_rows_are_the_incoming_edges_in_the_users_order(graph):
    index = GraphIndex.build(graph.edge_index, 30)
    assert (index.num_nodes, index.num_edges) == (30, 120)
    source, target = graph.edge_index.numpy()
    for node in range(30):
        wanted, row = (target == node).nonzero()[0], slice(*index.ptr[node : node + 2])
        assert np.array_equal(index.edge_id[row], wanted)
        assert np.array_equal(index.source[row], source[wanted])
    assert np.array_equal(index.in_degree(np.arange(30)), np.bincount(target, minlength=30))


def test_a_stored_index_is_mapped_into_memory(graph, tmp_path):
    built = GraphIndex.build(graph.edge_index, 30)
    built.save(tmp_path / "deep" / "graph.npy")
    opened = GraphIndex.open(tmp_path / "deep" / "graph.npy")
    for name in ("ptr", "source", "edge_id"):
        assert np.array_equal(getattr(opened, name), getattr(built, name))
    # What is mapped shows what happens to the file; what was read does not.
    file = np.lib.format.open_memmap(tmp_path / "deep" / "graph.npy", mode="r+")
    file[-1] += 5
    file.flush()
    assert int(opened.edge_id[-1]) == int(built.edge_id[-1]) + 5
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["graph.npy"]


def test_a_graph_without_edges(tmp_path):
    empty = torch.empty(2, 0, dtype=torch.long)
    GraphIndex.build(empty, 3).save(tmp_path / "i.npy")
    index = GraphIndex.open(tmp_path / "i.npy")
    assert (index.num_nodes, index.num_edges) == (3, 0)
    index.refuse_another(empty, 3)


def test_another_graph_is_refused(graph):
    index = GraphIndex.build(graph.edge_index, 30)
    index.refuse_another(graph.edge_index.clone(), 30)
    with pytest.raises(InstanceError, match="120 edges, but this one has 30 nodes and 119 edges"):
        index.refuse_another(graph.edge_index[:, 1:], 30)
    with pytest.raises(InstanceError, match="31 nodes"):
        index.refuse_another(graph.edge_index, 31)
    with pytest.raises(InstanceError, match="other edges"):
        index.refuse_another(graph.edge_index.flip(0), 30)


def test_wrong_files(graph, tmp_path):
    with pytest.raises(CheckpointError, match="There is no index"):
        GraphIndex.open(tmp_path / "none.npy")
    file = tmp_path / "i.npy"
    GraphIndex.build(graph.edge_index, 30).save(file)
    content = file.read_bytes()
    file.write_bytes(content[:-8])
    with pytest.raises(CheckpointError, match="damaged"):
        GraphIndex.open(file)
    file.write_bytes(b"not an array")
    with pytest.raises(CheckpointError, match="damaged"):
        GraphIndex.open(file)
    for other in (np.arange(9.0), np.arange(9), np.zeros((3, 3), dtype=np.int64)):
        np.save(file, other)
        with pytest.raises(CheckpointError, match="no index"):
            GraphIndex.open(file)
    words = np.load(_stored(path(4), tmp_path / "o.npy"))
    np.save(file, words[:-1])
    with pytest.raises(CheckpointError, match="damaged"):
        GraphIndex.open(file)
    np.save(file, np.array([(1 << 62), 0], dtype=object), allow_pickle=True)
    with pytest.raises(CheckpointError, match="damaged"):  # an array of objects would need pickle
        GraphIndex.open(file)
    (tmp_path / "taken").write_text("")
    with pytest.raises(CheckpointError, match="cannot be made"):
        GraphIndex.build(graph.edge_index, 30).save(tmp_path / "taken" / "i.npy")


def _stored(graph, file):
    GraphIndex.build(graph.edge_index, graph.num_nodes).save(file)
    return file
