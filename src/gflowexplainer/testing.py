"""Toy graphs and toy models to test explainers with; small enough to work everything out by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GINEConv, global_add_pool, global_mean_pool
from torch_geometric.utils import erdos_renyi_graph, to_undirected


def graph_of(edges: list[tuple[int, int]], num_nodes: int | None = None, width: int = 3, seed: int = 0) -> Data:
    """Makes an undirected graph from a list of edges, with random features that ``seed`` fixes."""
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    number = int(edge_index.max()) + 1 if num_nodes is None else num_nodes
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(number, width, generator=generator)
    return Data(x=x, edge_index=to_undirected(edge_index, num_nodes=number))


def path(num_nodes: int = 4, **settings: int) -> Data:
    """A path 0 - 1 - 2 - ..."""
    return graph_of([(i, i + 1) for i in range(num_nodes - 1)], num_nodes, **settings)


def cycle(num_nodes: int = 5, **settings: int) -> Data:
    """A ring."""
    return graph_of([(i, (i + 1) % num_nodes) for i in range(num_nodes)], num_nodes, **settings)


def star(num_leaves: int = 5, **settings: int) -> Data:
    """A hub, node 0, with leaves."""
    return graph_of([(0, i) for i in range(1, num_leaves + 1)], num_leaves + 1, **settings)


def house(**settings: int) -> Data:
    """A square 0 - 1 - 2 - 3 with a roof, node 4, on 0 and 1."""
    return graph_of([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)], 5, **settings)


def random_graph(num_nodes: int = 12, density: float = 0.25, seed: int = 0, width: int = 3) -> Data:
    """A connected random graph: random edges, and a path through all nodes to hold it together."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        edges = erdos_renyi_graph(num_nodes, density).t().tolist()
    backbone = [(i, i + 1) for i in range(num_nodes - 1)]
    return graph_of([tuple(edge) for edge in edges] + backbone, num_nodes, width=width, seed=seed)


class _Seeded(nn.Module, ABC):
    """Draws its weights from ``seed`` and leaves the global random state alone."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.build()

    @abstractmethod
    def build(self) -> None:
        """Makes the layers."""


class NodeModel(_Seeded):
    """A two-layer GCN that classifies nodes; sharp enough for its predictions to depend on the neighbourhood."""

    def __init__(self, in_channels: int = 3, num_classes: int = 3, seed: int = 0) -> None:
        self.in_channels, self.num_classes = in_channels, num_classes
        super().__init__(seed)

    def build(self) -> None:
        """Makes the layers."""
        self.first = GCNConv(self.in_channels, 8)
        self.second = GCNConv(8, self.num_classes)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Returns raw scores ``[N, num_classes]``."""
        hidden = self.first(x, edge_index, edge_weight).relu()
        return 3 * self.second(hidden, edge_index, edge_weight)


class GraphModel(_Seeded):
    """A two-layer GCN with mean pooling that classifies graphs."""

    def __init__(self, in_channels: int = 3, num_classes: int = 2, seed: int = 0) -> None:
        self.in_channels, self.num_classes = in_channels, num_classes
        super().__init__(seed)

    def build(self) -> None:
        """Makes the layers."""
        self.first = GCNConv(self.in_channels, 8)
        self.second = GCNConv(8, 8)
        self.readout = nn.Linear(8, self.num_classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns raw scores ``[G, num_classes]``."""
        if batch is None:
            batch = x.new_zeros(x.size(0), dtype=torch.long)
        hidden = self.second(self.first(x, edge_index).relu(), edge_index).relu()
        return 3 * self.readout(global_mean_pool(hidden, batch))


class EdgeFeatureModel(_Seeded):
    """A GINE network that regresses one value a graph from node and edge features."""

    def __init__(self, in_channels: int = 3, edge_dim: int = 2, seed: int = 0) -> None:
        self.in_channels, self.edge_dim = in_channels, edge_dim
        super().__init__(seed)

    def build(self) -> None:
        """Makes the layers."""
        self.conv = GINEConv(nn.Linear(self.in_channels, 8), edge_dim=self.edge_dim)
        self.readout = nn.Linear(8, 1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns values ``[G, 1]``."""
        if batch is None:
            batch = x.new_zeros(x.size(0), dtype=torch.long)
        return self.readout(global_add_pool(self.conv(x, edge_index, edge_attr).relu(), batch))
