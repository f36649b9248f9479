"""Training of a GNN on a task of a suite, classes or values, and whether it has learned the task."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from sklearn.metrics import r2_score
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from gflowbench.datasets import Benchmark
from gflowbench.models.descent import Descent, descend
from gflowbench.models.model_accuracy import logits
from gflowbench.suites.gnns import Shape, SuiteGNN, build_gnn

LEARNED = 0.95
"""Test accuracy, or for values R2, from which on a GNN counts as having learned its task."""
_PARTITIONS, _BATCH_SIZE = 4, 64


GRAPH_SCHEDULE = Descent(epochs=50, learning_rate=5e-3, good_enough=2e-3)
NODE_SCHEDULE = Descent(epochs=250, learning_rate=1e-2, good_enough=2e-3)
"""How GNNs are trained; the loss that is good enough is relative to the variance for values."""


def fit_gnn(
    gnn: str, task: Benchmark, seed: int, schedule: Descent | None = None, **shape: float
) -> tuple[SuiteGNN, float]:
    """Trains a GNN and keeps the weights of its best epoch: highest validation accuracy, then lowest loss.

    Args:
        gnn: The convolution, one of :data:`~gflowbench.suites.gnns.GNNS`.
        task: The task.
        seed: Fixes initial weights, dropout and the order of the graphs; the global random state is left as it was.
        schedule: How long and how fast.
        **shape: Further fields of :class:`~gflowbench.suites.gnns.Shape`.

    Returns:
        The GNN in eval mode, and its test accuracy or R2.
    """
    if schedule is None:
        schedule = NODE_SCHEDULE if task.task == "node" else GRAPH_SCHEDULE
    model = fresh_gnn(gnn, task, seed, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        _descend(model, task, schedule, np.random.default_rng(seed))
    return model.eval(), split_score(model, task)


def fresh_gnn(gnn: str, task: Benchmark, seed: int, **shape: float) -> SuiteGNN:
    """Returns a GNN of the size that a task needs, with weights drawn from ``seed``."""
    fields = {"hidden_channels": task.hidden_channels, "num_layers": task.num_layers, **shape}
    sizes = {"in_channels": task.graphs[0].num_features, "out_channels": task.num_classes}
    return build_gnn(Shape(gnn=gnn, level=task.task, **sizes, **fields), seed)  # type: ignore[arg-type]


@torch.no_grad()
def split_score(model: nn.Module, task: Benchmark, split: str = "test") -> float:
    """Returns the accuracy, or for values R2, on a split."""
    members = task.splits[split]
    output, truth = logits(model, task, members=members), task.labels(members)
    if task.is_regression:
        return float(r2_score(truth.numpy(), output[:, 0].numpy()))
    return float((output.argmax(dim=1) == truth).double().mean())


def _descend(model: SuiteGNN, task: Benchmark, schedule: Descent, rng: np.random.Generator) -> None:
    """Trains ``model`` in place."""
    spread = float(task.labels(task.splits["train"]).var()) if task.is_regression else 1.0
    partitions = _partitions(task, rng)
    validation = _batch(task, task.splits["val"])

    def losses(epoch: int) -> Iterator[tuple[Tensor, int]]:
        batches = partitions[epoch % len(partitions)]
        for number in rng.permutation(len(batches)):
            yield _loss(model, task, batches[number]), len(batches[number].y)

    def validate() -> tuple[float, float]:
        accuracy = 0.0 if task.is_regression else split_score(model, task, "val")
        return accuracy, float(_loss(model, task, validation)) / spread

    descend(model, schedule, losses, validate)


def _loss(model: nn.Module, task: Benchmark, batch: Data) -> Tensor:
    output = model(batch.x, batch.edge_index, batch.get("batch"))
    if "members" in batch:
        output = output[batch.members]
    if task.is_regression:
        return nn.functional.mse_loss(output[:, 0], batch.y)
    return nn.functional.cross_entropy(output, batch.y)


def _partitions(task: Benchmark, rng: np.random.Generator) -> list[list[Data]]:
    """Puts the training graphs into batches, a few times anew: doing so every epoch would take most of the time."""
    train = task.splits["train"]
    if task.task == "node":
        return [[_batch(task, train)]]
    orders = [train[torch.from_numpy(rng.permutation(len(train)))] for _ in range(_PARTITIONS)]
    return [[_batch(task, chunk) for chunk in order.split(_BATCH_SIZE)] for order in orders]


def _batch(task: Benchmark, members: Tensor) -> Data:
    """Returns the graphs of ``members`` as one, with the labels of ``members`` as ``y``."""
    if task.task == "node":
        graph = task.graphs[0]
        return Data(x=graph.x, edge_index=graph.edge_index, members=members, y=graph.y[members])
    batch = Batch.from_data_list([task.graphs[i] for i in members.tolist()])
    return Data(x=batch.x, edge_index=batch.edge_index, batch=batch.batch, y=batch.y.view(-1))
