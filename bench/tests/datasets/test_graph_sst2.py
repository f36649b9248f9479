from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from gflowbench.datasets import load, sentence_graphs
from gflowbench.datasets.graph_sst2 import choose_sentences
from gflowexplainer.errors import ConfigError, DatasetError


def test_sentences_of_the_paper(reference: Path) -> None:
    benchmark = load("graph-sst2", sentences=[69041, 69042], edges="window", vectors="hashed")
    assert (benchmark.task, benchmark.source, benchmark.num_classes) == ("graph", "generated", 2)
    assert not benchmark.has_ground_truth
    assert benchmark.graphs[0].tokens[:4] == ["lanie", "'s", "professional", "success"]
    assert [int(graph.y) for graph in benchmark.graphs] == [0, 0]
    assert benchmark.index.tolist() == [0, 1]
    assert benchmark.splits["test"].tolist() == [0, 1]
    for text in ("2 of 70042 sentences", "sst2_text.npz", "at most 2 apart", "hashed subword vectors"):
        assert text in benchmark.provenance
    for graph in benchmark.graphs:
        assert graph.x.shape == (len(graph.tokens), 128)
        assert nx.is_connected(nx.Graph(graph.edge_index.t().tolist()))


def test_limit_is_per_split_and_lazy(reference: Path) -> None:
    benchmark = load("graph-sst2", limit=30, edges="window", vectors="hashed", min_words=20)
    assert {key: len(ids) for key, ids in benchmark.splits.items()} == {"train": 30, "val": 30, "test": 30}
    assert all(benchmark.graphs[i].num_nodes >= 20 for i in benchmark.index.tolist())
    assert set(benchmark.index.tolist()) <= set(benchmark.splits["test"].tolist())


def test_sentences_of_ones_own() -> None:
    graphs, edge_note, vector_note = sentence_graphs(
        ["a good film", ["not", "good"]], [1, 0], edges="window", vectors="hashed", window=1
    )
    assert [graph.num_nodes for graph in graphs] == [3, 2]
    assert torch.equal(graphs[0].x[1], graphs[1].x[1])
    assert "at most 1 apart" in edge_note
    assert "hashed" in vector_note


def test_choice_of_sentences() -> None:
    split = np.array([0] * 10 + [1] * 2 + [2] * 5)
    assert choose_sentences(split, None, 3).tolist() == [0, 4, 9, 10, 11, 12, 14, 16]
    assert choose_sentences(split, [5, 3], None).tolist() == [5, 3]
    assert len(choose_sentences(split, None, None)) == 17


@pytest.mark.parametrize(
    ("sentences", "limit", "message"),
    [([17], 1, r"ids in \[0, 17\)"), ([], 1, "got 0 ids"), (None, 0, "'limit' must be at least 1")],
)
def test_impossible_choices(sentences: list[int] | None, limit: int, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        choose_sentences(np.zeros(17, dtype=int), sentences, limit)


def test_mistakes_in_sentences() -> None:
    with pytest.raises(DatasetError, match="2 sentences but 1 labels"):
        sentence_graphs(["a", "b"], [0])
    with pytest.raises(DatasetError, match="Sentence 1 has no words"):
        sentence_graphs(["a", " "], [0, 1])


def test_missing_text_names_both_ways(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"'sst2_text\.npz' was not found.*GFLOWEXPLAINER_DATA.*DIG's Graph-SST2"):
        load("graph-sst2", "generated", root=tmp_path)


def test_unknown_setting() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'limit'"):
        load("graph-sst2", "generated", limits=3)
