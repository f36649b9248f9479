"""Toy tasks of links that can be worked out by hand, for tests: a link is scored by what both ends share."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import MessagePassing

from gflowbench.typed.link_truth import RELATION, EdgeType, LinkTruth, TypedEdge

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


def shared_neighbours() -> LinkTruth:
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
    return LinkTruth(graph, SharedNeighbours(), None, chosen, chosen, paths, [around, around])


def shared_attributes() -> LinkTruth:
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
    return LinkTruth(graph, SharedAttributes(), _LIKES, link, link, [[path]], [around])
