from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark, Statistics, load, side_by_side, statistics


def test_by_hand() -> None:
    graph = Data(
        x=torch.ones(4, 3),
        edge_index=torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]]),
        y=torch.tensor([0, 0, 1, 1]),
        motif_id=torch.tensor([0, 0, -1, -1]),
    )
    assert statistics(Benchmark.from_graphs(graph)) == Statistics(
        graphs=1,
        nodes=4,
        edges=5,
        classes=2,
        features=3,
        self_loops=1,
        evaluated=2,
        motifs=1,
        motif_share=2 / 5,
    )


def test_without_ground_truth() -> None:
    graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(2))
    found = statistics(Benchmark.from_graphs(graph))
    assert found.motifs is None
    assert found.motif_share is None


@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [
        ("ba-shapes", 700, 4110),
        ("ba-community", 1400, 8920),
        ("tree-grid", 1231, 3130),
        ("ba-2motifs", 25000, 51000),
    ],
)
def test_default_sizes(name: str, nodes: int, edges: int) -> None:
    found = statistics(load(name, "generated"))
    assert (found.nodes, found.edges) == (nodes, edges)


def test_tree_cycles_lies_around_the_published_count() -> None:
    # 930 sure edges, 30 second links on average, and one percent of noise.
    edges = [statistics(load("tree-cycles", "generated", seed=seed)).edges for seed in range(20)]
    assert 1930 < sum(edges) / len(edges) < 1946
    assert 1942 in range(min(edges), max(edges) + 1)


def test_table_without_reference(tmp_path: Path) -> None:
    table = side_by_side(root=tmp_path)
    assert "| tree-grid | paper | 1 | 1,231 | 3,410 | 2 |" in table
    assert "| ba-shapes | generated, seed 0 | 1 | 700 | 4,110 | 4 | 10 | 80 | 23.4 % | 60 |" in table
    assert "published" not in table
