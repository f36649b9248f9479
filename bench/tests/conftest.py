"""Toy models whose answers can be worked out by hand, and a five-node graph with a motif."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import MessagePassing, SimpleConv, global_mean_pool

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject
from gflowbench.typed.link_task import RELATION, EdgeType, LinkTask, TypedEdge


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


_PAIRS = [(0, 1), (1, 3), (0, 2), (2, 3), (0, 4), (4, 5), (3, 6), (6, 7)]
_LIKES: EdgeType = ("user", "likes", "item")
_OF: dict[str, EdgeType] = {"user": ("attr", "of", "user"), "item": ("attr", "of", "item")}


class Sum(MessagePassing):
    """Adds up what the neighbours hold."""

    def __init__(self) -> None:
        super().__init__(aggr="sum")

    def forward(self, x: Tensor | tuple[Tensor, Tensor], edge_index: Tensor) -> Tensor:
        """Returns what arrives at the receivers."""
        return self.propagate(edge_index, x=x)


class SharedNeighbours(nn.Module):
    """Scores a link by twice the number of neighbours that its ends share, less 1, where features are one-hot."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Sum()

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        """Returns raw scores of pairs ``[2, L]``, shape ``[L]``."""
        hidden = self.layer(x, edge_index)
        return 2 * (hidden[edge_label_index[0]] * hidden[edge_label_index[1]]).sum(dim=1) - 1


class SharedAttributes(nn.Module):
    """Scores a user and an item by the number of attributes that they share."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"__".join(key): Sum() for key in _OF.values()})

    def forward(
        self, x_dict: dict[str, Tensor], edge_index_dict: dict[EdgeType, Tensor], edge_label_index: Tensor
    ) -> Tensor:
        """Returns raw scores of pairs ``[2, L]``, shape ``[L]``."""
        attributes, ends = x_dict["attr"], []
        for (kind, key), place in zip(_OF.items(), edge_label_index, strict=True):
            nobody = attributes.new_zeros(x_dict[kind].size(0), attributes.size(1))
            ends.append(self.layers["__".join(key)]((attributes, nobody), edge_index_dict[key])[place])
        return (ends[0] * ends[1]).sum(dim=1)


@pytest.fixture
def shared_neighbours() -> LinkTask:
    """Makes a plain graph in which 0 and 3 share the neighbours 1 and 2, and 4 to 7 hang on them.

    The links are 0 - 3 and 3 - 0, to fit to and to explain.
    """
    pairs = torch.tensor(_PAIRS).t()
    graph = Data(x=torch.eye(8), edge_index=torch.cat([pairs, pairs.flip(0)], dim=1))
    place = {tuple(ends): number for number, ends in enumerate(graph.edge_index.t().tolist())}
    links = [(0, 3), (3, 0)]
    paths: list[list[list[TypedEdge]]] = [
        [[(RELATION, place[one, middle]), (RELATION, place[middle, other])] for middle in (1, 2)]
        for one, other in links
    ]
    around: list[TypedEdge] = [(RELATION, number) for number in range(graph.num_edges)]
    chosen = torch.tensor(links).t()
    return LinkTask(graph, SharedNeighbours(), None, chosen, chosen, paths, [around, around])


@pytest.fixture
def shared_attributes() -> LinkTask:
    """Makes a typed graph in which user 0 has the attributes 0 and 1, user 1 has 2, and item 0 has 1 and 2.

    The link is that of user 0 and item 0, which share attribute 1.
    """
    graph = HeteroData()
    graph["attr"].x, graph["user"].x, graph["item"].x = torch.eye(3), torch.zeros(2, 1), torch.zeros(1, 1)
    graph[_OF["user"]].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    graph[_OF["item"]].edge_index = torch.tensor([[1, 2], [0, 0]])
    around = [(key, number) for key in graph.edge_types for number in range(graph[key].num_edges)]
    path: list[TypedEdge] = [(_OF["user"], 1), (_OF["item"], 0)]
    link = torch.tensor([[0], [0]])
    return LinkTask(graph, SharedAttributes(), _LIKES, link, link, [[path]], [around])
