import json
from pathlib import Path

import numpy as np
import pytest

from gflowbench.datasets import load
from gflowexplainer.errors import DatasetError

PREFIX = "Graph-SST2_"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Three graphs of 3, 2 and 1 words in DIG's layout, edges in one direction and not sorted by graph."""
    folder = tmp_path / "Graph-SST2" / "raw"
    folder.mkdir(parents=True)
    texts = {
        "edge_index": "3 4\n0 1\n2 1\n",
        "node_indicator": "1\n1\n1\n2\n2\n3\n",
        "graph_labels": "1\n0\n1\n",
        "split_indices": "0\n1\n2\n",
    }
    for name, text in texts.items():
        (folder / f"{PREFIX}{name}.txt").write_text(text)
    (folder / f"{PREFIX}sentence_tokens.json").write_text(json.dumps({"0": ["a", "b", "c"], "1": ["d", "e"]}))
    np.save(folder / f"{PREFIX}node_features.npy", np.arange(12.0).reshape(6, 2))
    return folder


def test_reads_dig_layout(raw: Path) -> None:
    benchmark = load("graph-sst2", root=raw.parent.parent, min_words=1)
    assert benchmark.source == "downloaded"
    assert "DIG's processed Graph-SST2" in benchmark.provenance
    first, second, third = benchmark.graphs
    assert first.edge_index.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert second.edge_index.t().tolist() == [[0, 1], [1, 0]]
    assert third.edge_index.shape == (2, 0)
    assert second.x.tolist() == [[6.0, 7.0], [8.0, 9.0]]
    assert [int(graph.y) for graph in benchmark.graphs] == [1, 0, 1]
    assert first.tokens == ["a", "b", "c"]
    assert benchmark.index.tolist() == benchmark.splits["test"].tolist() == [2]


def test_commas_npz_and_single_graphs(raw: Path) -> None:
    (raw / f"{PREFIX}edge_index.txt").write_text("3, 4\n0, 1\n2, 1\n")
    np.savez(raw / f"{PREFIX}node_features.npz", x=np.ones((6, 2)))
    (raw / f"{PREFIX}node_features.npy").unlink()
    benchmark = load("graph-sst2", "downloaded", root=raw, sentences=[1])
    assert benchmark.graphs[0].edge_index.t().tolist() == [[0, 1], [1, 0]]
    assert benchmark.graphs[0].x.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_pickle_is_refused_and_not_opened(raw: Path) -> None:
    (raw / f"{PREFIX}node_features.npy").unlink()
    (raw / f"{PREFIX}node_features.pkl").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(DatasetError, match=r"is a pickle.*numpy\.save\(.*source=\"generated\""):
        load("graph-sst2", "downloaded", root=raw)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("edge_index", "0 9\n", "edges name nodes 0 to 9 of 6"),
        ("edge_index", "0 5\n", "connects two graphs"),
        ("edge_index", "zero one\n", r"edge_index\.txt' is missing or damaged"),
        ("node_indicator", "1\n1\n", "2 nodes but word vectors"),
        ("node_indicator", "1\n1\n1\n2\n2\n4\n", "does not count up"),
        ("split_indices", "0\n", "3 labels but 1 split"),
    ],
)
def test_files_that_do_not_fit(raw: Path, file: str, text: str, message: str) -> None:
    (raw / f"{PREFIX}{file}.txt").write_text(text)
    with pytest.raises(DatasetError, match=message):
        load("graph-sst2", "downloaded", root=raw)
