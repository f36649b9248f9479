"""Toy graphs and toy models to test explainers with; small enough to work everything out by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCNConv, GINEConv, HeteroConv, SAGEConv, global_add_pool, global_mean_pool
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


def typed_graph(num_papers: int = 12, num_authors: int = 8, num_venues: int = 4, seed: int = 0) -> HeteroData:
    """Papers with authors and venues: three node types of different width, four relations, both directions of two."""
    generator = torch.Generator().manual_seed(seed)
    graph = HeteroData()
    for node_type, count, width in (("paper", num_papers, 5), ("author", num_authors, 3), ("venue", num_venues, 20)):
        graph[node_type].x = torch.randn(count, width, generator=generator)
    papers = torch.arange(num_papers)
    writer = torch.randint(0, num_authors, (2 * num_papers,), generator=generator)
    writes = torch.unique(torch.stack([writer, papers.repeat(2)]), dim=1)
    venue = torch.stack([papers, torch.randint(0, num_venues, (num_papers,), generator=generator)])
    graph["author", "writes", "paper"].edge_index = writes
    graph["paper", "rev_writes", "author"].edge_index = writes.flip(0)
    graph["paper", "in", "venue"].edge_index = venue
    graph["venue", "rev_in", "paper"].edge_index = venue.flip(0)
    return graph


class TypedNodeModel(_Seeded):
    """Two layers of ``HeteroConv`` that classify the papers of :func:`typed_graph`."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)

    def build(self) -> None:
        """Makes the layers."""
        graph = typed_graph()
        self.into = nn.ModuleDict({t: nn.Linear(graph[t].num_features, 8) for t in graph.node_types})
        self.layers = nn.ModuleList(
            HeteroConv({key: SAGEConv((8, 8), 8) for key in graph.edge_types}) for _ in range(2)
        )  # fmt: skip
        self.out = nn.Linear(8, 3)

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[tuple[str, str, str], Tensor]) -> Tensor:
        """Returns raw scores ``[num_papers, 3]``."""
        hidden = {key: self.into[key](x).relu() for key, x in x_dict.items()}
        for layer in self.layers:
            hidden = {key: x.relu() for key, x in layer(hidden, edge_index_dict).items()}
        return 3 * self.out(hidden["paper"])


class LinkModel(_Seeded):
    """A two-layer GCN that scores links by the dot product of both ends."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)

    def build(self) -> None:
        """Makes the layers."""
        self.first = GCNConv(3, 8)
        self.second = GCNConv(8, 8)

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        """Returns raw scores ``[num_links]``."""
        ends = self.second(self.first(x, edge_index).relu(), edge_index)[edge_label_index]
        return 4 * (ends[0] * ends[1]).sum(dim=1)


class TypedLinkModel(TypedNodeModel):
    """The layers of :class:`TypedNodeModel`, which score links of authors and venues."""

    def forward(  # type: ignore[override]
        self,
        x_dict: dict[str, Tensor],
        edge_index_dict: dict[tuple[str, str, str], Tensor],
        edge_label_index: Tensor,
    ) -> Tensor:
        """Returns raw scores ``[num_links]``."""
        hidden = {key: self.into[key](x).relu() for key, x in x_dict.items()}
        for layer in self.layers:
            hidden = layer(hidden, edge_index_dict)
        author, venue = hidden["author"][edge_label_index[0]], hidden["venue"][edge_label_index[1]]
        return 4 * (author * venue).sum(dim=1)
