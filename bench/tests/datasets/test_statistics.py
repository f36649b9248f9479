import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark, Statistics, statistics


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
