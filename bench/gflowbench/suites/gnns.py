"""The GNNs that the suites explain: convolutions of one kind, batch normalisation, a sum over nodes for graphs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GINConv, SAGEConv, global_add_pool, global_max_pool

from gflowbench.models.convolutions import CONVOLUTIONS
from gflowbench.models.weights import read_safetensors
from gflowexplainer.errors import CheckpointError, one_of
from gflowexplainer.storage.files import write_bytes

GNNS = ("gcn", "gin", "graphsage", "gat")
FORMAT = "gflowbench-suite-gnn-1"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a GNN is rebuilt from.

    Attributes:
        gnn: The convolution: ``"gcn"``, ``"gin"``, ``"graphsage"`` or ``"gat"``.
        level: ``"node"`` or ``"graph"``.
        in_channels: Number of node features.
        out_channels: Number of classes, or 1 for a value.
        hidden_channels: Width of each layer.
        num_layers: Number of convolutions.
        dropout: Share of hidden values that training drops.
        normalized: Whether each hidden layer has batch normalisation.
        mean: GraphSAGE: averages the neighbours instead of summing over them.
    """

    gnn: str
    level: str
    in_channels: int
    out_channels: int
    hidden_channels: int = 32
    num_layers: int = 3
    dropout: float = 0.0
    normalized: bool = True
    mean: bool = False

    def __post_init__(self) -> None:
        """Refuses kinds that there are not."""
        one_of("gnn", self.gnn, GNNS)
        one_of("level", self.level, ("node", "graph"))


class SuiteGNN(nn.Module):
    """Classifies or values nodes or graphs.

    Every layer is convolution, batch normalisation, ReLU. Nodes get a linear layer on the last one. Graphs get the sum
    and the maximum over their nodes, and a network of two layers on it.

    Args:
        shape: What it is made of; kept as the attribute of the same name.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.hidden_channels
        ends = [shape.in_channels] + [width] * shape.num_layers
        self.convolutions = nn.ModuleList(_convolution(shape, a, b) for a, b in pairwise(ends))
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(shape.num_layers if shape.normalized else 0))
        if shape.level == "graph":
            self.hidden = nn.Linear(2 * width, width)
        self.readout = nn.Linear(width, shape.out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns logits or values.

        Args:
            x: Node features, shape ``[N, in_channels]``.
            edge_index: Edges, shape ``[2, E]``.
            batch: Graph of each node, shape ``[N]``; ``None`` for one graph.

        Returns:
            Shape ``[N, out_channels]`` at node level, ``[B, out_channels]`` at graph level.
        """
        for number, convolution in enumerate(self.convolutions):
            x = convolution(x, edge_index)
            if self.shape.normalized:
                x = self.norms[number](x)
            x = nn.functional.dropout(x.relu(), self.shape.dropout, self.training)
        if self.shape.level == "graph":
            x = self.hidden(torch.cat([global_add_pool(x, batch), global_max_pool(x, batch)], dim=1)).relu()
        return self.readout(x)


def build_gnn(shape: Shape, seed: int) -> SuiteGNN:
    """Returns a GNN with weights drawn from ``seed``; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return SuiteGNN(shape)


def save_gnn(path: Path, model: SuiteGNN, score: float) -> None:
    """Writes a GNN with its test score as safetensors, whole or not at all."""
    metadata = {"format": FORMAT, "shape": json.dumps(asdict(model.shape)), "score": repr(float(score))}
    write_bytes(path, save({k: v.detach().contiguous() for k, v in model.state_dict().items()}, metadata))


def load_gnn(path: Path) -> tuple[SuiteGNN, float]:
    """Reads what :func:`save_gnn` wrote, in eval mode, with its test score."""
    tensors, metadata = read_safetensors(path)
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"'{path}' holds no GNN of the suites (format {metadata.get('format')!r}). Delete it.")
    try:
        model = build_gnn(Shape(**json.loads(metadata["shape"])), seed=0)
        model.load_state_dict(tensors)
        return model.eval(), float(metadata["score"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"'{path}' does not fit the GNN it should hold: {error}. Delete it.") from error


def _convolution(shape: Shape, in_channels: int, out_channels: int) -> nn.Module:
    if shape.gnn == "graphsage" and shape.mean:
        return SAGEConv(in_channels, out_channels)
    if shape.gnn == "gin":
        inner = nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))
        # With eps 0 a node and its neighbours are one sum, so that colours next to each other are hard to tell apart.
        return GINConv(inner, eps=0.5, train_eps=True)
    return CONVOLUTIONS[shape.gnn].layer(in_channels, out_channels)
