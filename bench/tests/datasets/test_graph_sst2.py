from pathlib import Path

import networkx as nx
import pytest
import torch

from gflowbench.datasets import load, sentence_graphs
from gflowexplainer.errors import DatasetError


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


def test_sentences_of_ones_own() -> None:
    graphs, edge_note, vector_note = sentence_graphs(
        ["a good film", ["not", "good"]], [1, 0], edges="window", vectors="hashed", window=1
    )
    assert [graph.num_nodes for graph in graphs] == [3, 2]
    assert torch.equal(graphs[0].x[1], graphs[1].x[1])
    assert "at most 1 apart" in edge_note
    assert "hashed" in vector_note


def test_missing_text_names_both_ways(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"'sst2_text\.npz' was not found.*GFLOWEXPLAINER_DATA.*DIG's Graph-SST2"):
        load("graph-sst2", "generated", root=tmp_path)
