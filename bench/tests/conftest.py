"""Toy models whose answers can be worked out by hand, and a five-node graph with a motif."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv, global_mean_pool

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject


class CountNeighbors(nn.Module):
    """Says class 1 with probability sigmoid(neighbours - 1); its computation graphs reach 3 hops."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SimpleConv(aggr="sum")
        self.unused = nn.ModuleList([SimpleConv(), SimpleConv()])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        count = self.conv(x[:, :1], edge_index) - 1
        return torch.cat([torch.zeros_like(count), count], dim=1)


class MeanDegree(nn.Module):
    """Says class 1 of a graph with probability sigmoid(mean number of neighbours)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SimpleConv(aggr="sum")

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        mean = global_mean_pool(self.conv(x[:, :1], edge_index), batch)
        return torch.cat([torch.zeros_like(mean), mean], dim=1)


def both_ways(*edges: tuple[int, int]) -> Tensor:
    forth = torch.tensor(edges).t()
    return torch.cat([forth, forth.flip(0)], dim=1)


@pytest.fixture
def count_neighbors() -> nn.Module:
    return CountNeighbors()


@pytest.fixture
def mean_degree() -> nn.Module:
    return MeanDegree()


@pytest.fixture
def triangle() -> Benchmark:
    """Five nodes: the motif is the triangle 0-1-2, a path 2-3-4 hangs on it."""
    graph = Data(
        x=torch.ones(5, 2),
        edge_index=both_ways((0, 1), (0, 2), (1, 2), (2, 3), (3, 4)),
        y=torch.tensor([1, 1, 1, 0, 0]),
        motif_id=torch.tensor([0, 0, 0, -1, -1]),
    )
    return Benchmark.from_graphs(graph, name="triangle", index=[0], motif_size=3)


@pytest.fixture
def triangle_subject(triangle: Benchmark, count_neighbors: nn.Module) -> Subject:
    return Subject.of(count_neighbors, triangle, num_hops=4)


@pytest.fixture
def two_triangles() -> Benchmark:
    """Two triangles 0-1-2 and 4-5-6, joined by node 3, which has a self loop; nodes 1 and 3 are explained."""
    graph = Data(
        x=torch.ones(7, 2),
        edge_index=torch.cat(
            [
                both_ways((0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6), (5, 6)),
                torch.tensor([[3], [3]]),
            ],
            dim=1,
        ),
        y=torch.tensor([1, 1, 1, 0, 1, 1, 1]),
        motif_id=torch.tensor([0, 0, 0, -1, 1, 1, 1]),
    )
    return Benchmark.from_graphs(graph, name="two-triangles", index=[1, 3], motif_size=3)


@pytest.fixture
def molecules() -> Benchmark:
    """Three graphs: a triangle with a tail, a lone triangle with an isolated node, a path without motif."""
    shapes = [
        (5, both_ways((0, 1), (0, 2), (1, 2), (2, 3), (3, 4)), [0, 0, 0, -1, -1]),
        (4, both_ways((1, 2), (1, 3), (2, 3)), [-1, 0, 0, 0]),
        (3, both_ways((0, 1), (1, 2)), [-1, -1, -1]),
    ]
    graphs = [
        Data(x=torch.ones(n, 2), edge_index=edges, y=torch.tensor([1]), motif_id=torch.tensor(motif))
        for n, edges, motif in shapes
    ]
    return Benchmark.from_graphs(graphs, name="molecules", task="graph", index=[0, 1, 2], motif_size=3)


@pytest.fixture
def no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nobody has put the published files, neither by name nor beside the checkout."""
    there = Path.is_file
    monkeypatch.delenv("GFLOWEXPLAINER_DATA", raising=False)
    monkeypatch.setattr(Path, "is_file", lambda self: self.parts[-3:-1] != ("shared", "data") and there(self))
