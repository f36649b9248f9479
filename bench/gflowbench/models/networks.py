"""The GNNs that are explained: three convolutions and a linear layer, for nodes and for graphs."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, MessagePassing, global_add_pool, global_max_pool, global_mean_pool

from gflowbench.models.architecture import Architecture
from gflowbench.models.convolutions import CONVOLUTIONS
from gflowexplainer.errors import InstanceError, ModelError


class Network(nn.Module):
    """Three convolutions of equal width; what follows them is the subclass's.

    With ``normalization="l2"`` each layer is convolution, L2 normalisation of every node's row, ReLU (the
    published GNNs). With ``"batch"`` it is convolution, ReLU, batch normalisation, the last layer without it
    (the PGExplainer variant of the published GNNs). With ``"none"`` it is convolution and ReLU.

    Args:
        architecture: The shape; kept as the attribute of the same name.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        make, width = CONVOLUTIONS[architecture.model].layer, architecture.hidden_channels
        self.conv1 = make(architecture.in_channels, width)
        self.conv2 = make(width, width)
        self.conv3 = make(width, width)
        if architecture.normalization == "batch":
            self.bn1, self.bn2 = BatchNorm(width), BatchNorm(width)

    @property
    def convolutions(self) -> tuple[MessagePassing, MessagePassing, MessagePassing]:
        """The three layers in order."""
        return self.conv1, self.conv2, self.conv3

    def layers(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> list[Tensor]:
        """Returns the output of every layer for every node.

        Args:
            x: Node features, shape ``[N, in_channels]``.
            edge_index: Edges, shape ``[2, E]``.
            edge_weight: Weight of each edge, shape ``[E]``; GCN only.

        Returns:
            Three tensors of shape ``[N, hidden_channels]``.
        """
        shape = self.architecture
        if x.dim() != 2 or x.size(1) != shape.in_channels:
            raise InstanceError(
                f"'x' must have shape [N, {shape.in_channels}], as the GNN was built (got {list(x.shape)})."
            )
        weights: tuple[Tensor, ...] = ()
        if edge_weight is not None:
            if not CONVOLUTIONS[shape.model].weighted:
                raise ModelError(f"'{shape.model}' takes no 'edge_weight'. Leave it out, or use 'gcn'.")
            weights = (edge_weight,)
        outputs = []
        for number, convolution in enumerate(self.convolutions):
            x = self.activate(convolution(x, edge_index, *weights), number)
            outputs.append(x)
        return outputs

    def activate(self, x: Tensor, number: int) -> Tensor:
        """Applies what follows the convolution of layer ``number`` (0, 1 or 2) to its output ``x``."""
        if self.architecture.normalization == "l2":
            return nn.functional.normalize(x, p=2.0, dim=1).relu()
        x = x.relu()
        if self.architecture.normalization == "none" or number == 2:
            return x
        return (self.bn1, self.bn2)[number](x)


class NodeNetwork(Network):
    """Classifies nodes: the three layers' outputs side by side, then a linear layer."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        self.lin = nn.Linear(3 * architecture.hidden_channels, architecture.num_classes)

    def embed(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Returns what the linear layer sees of each node, shape ``[N, 3 * hidden_channels]``."""
        return torch.cat(self.layers(x, edge_index, edge_weight), dim=1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Returns class logits of each node, shape ``[N, num_classes]``."""
        return self.lin(self.embed(x, edge_index, edge_weight))


class GraphNetwork(Network):
    """Classifies graphs: max and mean over the nodes of the last layer side by side, then a linear layer."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        self.lin = nn.Linear(2 * architecture.hidden_channels, architecture.num_classes)

    def embed(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Returns the last layer's output for each node, shape ``[N, hidden_channels]``."""
        return self.layers(x, edge_index, edge_weight)[-1]

    def pool(self, nodes: Tensor, batch: Tensor | None = None) -> Tensor:
        r"""Returns max and mean over the nodes of each graph, shape ``[B, 2 * hidden_channels]``.

        With padding to :math:`n` nodes, a graph of :math:`m` has :math:`n - m` nodes more, which no edge joins
        to it and which all have the same embedding :math:`p`. So its maximum is :math:`\max(\max_v h_v, p)`
        and its mean :math:`(\sum_v h_v + (n - m) p) / n`.

        Args:
            nodes: Embeddings, shape ``[N, hidden_channels]``.
            batch: Graph of each node, shape ``[N]``; ``None`` for one graph.
        """
        largest = global_max_pool(nodes, batch)
        padded_nodes = self.architecture.padded_nodes
        if padded_nodes is None:
            return torch.cat([largest, global_mean_pool(nodes, batch)], dim=1)
        sizes = global_add_pool(nodes.new_ones(nodes.size(0), 1), batch)
        missing = (padded_nodes - sizes).clamp(min=0)
        padding = self._padding_embedding(nodes)
        largest = torch.where(missing > 0, torch.maximum(largest, padding), largest)
        mean = (global_add_pool(nodes, batch) + missing * padding) / (sizes + missing)
        return torch.cat([largest, mean], dim=1)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Returns class logits of each graph, shape ``[B, num_classes]``.

        Args:
            x: Node features, shape ``[N, in_channels]``.
            edge_index: Edges, shape ``[2, E]``.
            batch: Graph of each node, shape ``[N]``; ``None`` for one graph.
            edge_weight: Weight of each edge, shape ``[E]``; GCN only.
        """
        return self.lin(self.pool(self.embed(x, edge_index, edge_weight), batch))

    def _padding_embedding(self, like: Tensor) -> Tensor:
        """Returns the last layer's output for one padding node, shape ``[1, hidden_channels]``."""
        alone = CONVOLUTIONS[self.architecture.model].alone
        x = like.new_zeros(1, self.architecture.in_channels)
        for number, convolution in enumerate(self.convolutions):
            x = self.activate(alone(convolution, x), number)
        return x


def build(architecture: Architecture) -> NodeNetwork | GraphNetwork:
    """Returns a GNN of the given shape with fresh weights."""
    return (NodeNetwork if architecture.task == "node" else GraphNetwork)(architecture)
