"""Centred layers: initial biases that tell nodes apart from the first training step on."""

import torch
from torch import Tensor, nn

from gflowbench.models.networks import GraphNetwork, NodeNetwork


@torch.no_grad()
def centre(model: NodeNetwork | GraphNetwork, x: Tensor, edge_index: Tensor) -> None:
    r"""Sets the biases of the convolutions so that every layer's output is centred on the data, in place.

    PyTorch Geometric starts the biases of GCN and GAT at zero. With constant features the first convolution
    then gives all nodes the same direction, and the L2 normalisation after it makes them alike; training can
    stay for long where nothing tells two nodes apart. Here a layer starts with the bias
    :math:`\sigma z - \mu`, with :math:`\mu` and :math:`\sigma` the mean and spread of its outputs over the
    nodes and :math:`z` standard normal, so that normalisation spreads the nodes over the sphere.
    Layers without such a bias (GIN and GraphSAGE, whose linear parts start with random ones) are left alone.

    Args:
        model: The GNN, fresh.
        x: Features of the training nodes, shape ``[N, in_channels]``.
        edge_index: Their edges, shape ``[2, E]``.
    """
    for number, convolution in enumerate(model.convolutions):
        output = convolution(x, edge_index)
        bias = getattr(convolution, "bias", None)
        if isinstance(bias, nn.Parameter):
            output = output - bias
            bias.copy_(output.std(dim=0) * torch.randn_like(bias) - output.mean(dim=0))
            output = output + bias
        x = model.activate(output, number)
