"""The graph convolutions a GNN can be built from, by name.

All are PyTorch Geometric's own ``MessagePassing`` layers, so explainers that mask messages work on them.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, MessagePassing, SAGEConv

GAT_HEADS = 4


class Convolution(NamedTuple):
    """One kind of graph convolution.

    Attributes:
        layer: Makes the layer from its numbers of input and output channels.
        alone: Applies a layer to ``[N, in]`` features of nodes whose only edge is a self loop, without any
            message: that stays right while an explainer has put masks on the layer's messages.
        weighted: Whether the layer takes edge weights.
    """

    layer: Callable[[int, int], MessagePassing]
    alone: Callable[[MessagePassing, Tensor], Tensor]
    weighted: bool


def _gin_layer(in_channels: int, out_channels: int) -> MessagePassing:
    return GINConv(
        nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))
    )


def _gat_layer(in_channels: int, out_channels: int) -> MessagePassing:
    return GATConv(in_channels, out_channels // GAT_HEADS, heads=GAT_HEADS)


def _sage_layer(in_channels: int, out_channels: int) -> MessagePassing:
    # On constant node features, as most of the benchmarks have them, a mean over neighbours is the same for
    # every node; a sum sees the degree.
    return SAGEConv(in_channels, out_channels, aggr="sum")


CONVOLUTIONS: dict[str, Convolution] = {
    # One edge, the self loop, has symmetric normalisation 1.
    "gcn": Convolution(GCNConv, lambda layer, x: layer.lin(x) + layer.bias, weighted=True),
    # The node itself, and once more as its own neighbour.
    "gin": Convolution(_gin_layer, lambda layer, x: layer.nn((2 + layer.eps) * x), weighted=False),
    # Attention over one neighbour is 1.
    "gat": Convolution(_gat_layer, lambda layer, x: layer.lin(x) + layer.bias, weighted=False),
    "graphsage": Convolution(_sage_layer, lambda layer, x: layer.lin_l(x) + layer.lin_r(x), weighted=False),
}
