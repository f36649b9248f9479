"""The share of nodes or graphs that a GNN classifies right, on each split of a benchmark."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.loader import DataLoader

from gflowbench.datasets import Benchmark
from gflowexplainer.errors import DatasetError, ModelError

SPLITS = ("train", "val", "test")


class Accuracy(NamedTuple):
    """Right answers out of all."""

    correct: int
    total: int

    @property
    def share(self) -> float:
        """The accuracy, in [0, 1]; ``nan`` for an empty split."""
        return self.correct / self.total if self.total else float("nan")

    def __str__(self) -> str:
        return f"{self.share:.6f} ({self.correct}/{self.total})"


def accuracies(model: nn.Module, benchmark: Benchmark, batch_size: int = 256) -> dict[str, Accuracy]:
    """Counts the right predictions of ``model`` on each split; the model runs in the mode it comes in.

    Args:
        model: A GNN that returns logits, shape ``[N, C]`` for nodes or ``[B, C]`` for graphs.
        benchmark: Where to measure, with its splits.
        batch_size: Graph tasks: graphs in one forward pass.

    Returns:
        One :class:`Accuracy` for each of ``"train"``, ``"val"``, ``"test"``.
    """
    right = logits(model, benchmark, batch_size).argmax(dim=1).cpu() == benchmark.labels()
    return {name: Accuracy(int(right[members].sum()), members.numel()) for name, members in splits(benchmark).items()}


@torch.no_grad()
def logits(model: nn.Module, benchmark: Benchmark, batch_size: int = 256, members: Tensor | None = None) -> Tensor:
    """Returns the model's logits for nodes or graphs of the benchmark, shape ``[M, C]``.

    Args:
        model: A GNN that returns logits.
        benchmark: The data; it stays on its device.
        batch_size: Graph tasks: graphs in one forward pass.
        members: Positions of the ``M`` nodes or graphs; by default all, in order.
    """
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    if benchmark.task == "node":
        graph = benchmark.graphs[0]
        outputs = [model(graph.x.to(device), graph.edge_index.to(device))]
        expected = graph.num_nodes
    else:
        graphs = benchmark.graphs if members is None else [benchmark.graphs[i] for i in members.tolist()]
        outputs, expected = [], len(graphs)
        # A loader without a generator of its own draws from the global one, though nothing here is random.
        for batch in DataLoader(graphs, batch_size=batch_size, generator=torch.Generator()):
            batch = batch.to(device)
            outputs.append(model(batch.x, batch.edge_index, batch.batch))
    answer = torch.cat(outputs)
    if answer.dim() != 2 or len(answer) != expected:
        raise ModelError(
            f"The GNN must return logits of shape [{expected}, C] on '{benchmark.name}' (got {list(answer.shape)})."
        )
    return answer if benchmark.task == "graph" or members is None else answer[members.to(device)]


def splits(benchmark: Benchmark) -> dict[str, Tensor]:
    """Returns the positions of the nodes or graphs of each split."""
    if benchmark.task == "node" and not benchmark.splits:
        graph = benchmark.graphs[0]
        masks = {name: getattr(graph, f"{name}_mask", None) for name in SPLITS}
        found = {name: mask.nonzero().reshape(-1) for name, mask in masks.items() if mask is not None}
    else:
        found = {name: benchmark.splits[name] for name in SPLITS if name in benchmark.splits}
    if missing := [name for name in SPLITS if name not in found]:
        raise DatasetError(f"The dataset '{benchmark.name}' has no split {missing}. A GNN needs {list(SPLITS)}.")
    return found
