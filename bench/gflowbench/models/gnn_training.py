"""Training of a GNN on a benchmark, with early stopping on the validation split."""

import copy
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from gflowbench.datasets import Benchmark
from gflowbench.models.architecture import Architecture
from gflowbench.models.descent import Descent, descend
from gflowbench.models.initialization import centre
from gflowbench.models.model_accuracy import Accuracy, accuracies, logits, splits
from gflowbench.models.networks import GraphNetwork, NodeNetwork, build
from gflowbench.models.recipes import Recipe, recipe_for
from gflowbench.models.weights import save_weights
from gflowexplainer.errors import ConfigError, DatasetError


@dataclass(frozen=True)
class TrainedModel:
    """A trained GNN and how it came about.

    Attributes:
        model: The GNN of the best epoch, in eval mode.
        accuracies: Right answers on each split.
        curves: For each epoch the training ``loss``, and ``val_loss`` and ``val_accuracy`` after it.
        best_epoch: The epoch (from 0) whose weights were kept.
        seconds: Time the training took.
        dataset: Name of the benchmark.
        facts: Seed, recipe and origin of the data, as they are saved.
    """

    model: NodeNetwork | GraphNetwork
    accuracies: dict[str, Accuracy]
    curves: dict[str, list[float]]
    best_epoch: int
    seconds: float
    dataset: str
    facts: dict[str, Any]

    def save(self, path: str | Path) -> Path:
        """Writes the GNN as safetensors, with its accuracies and facts."""
        return save_weights(path, self.model, dataset=self.dataset, accuracies=self.accuracies, facts=self.facts)


def train(
    model_name: str,
    benchmark: Benchmark,
    *,
    seed: int = 0,
    recipe: Recipe | None = None,
    device: str | torch.device = "cpu",
    progress: bool = True,
    **changes: Any,
) -> TrainedModel:
    """Trains a GNN of the paper's shape.

    Node tasks take the whole graph in every step, graph tasks mini-batches. The weights of the epoch with the
    highest validation accuracy are kept; among equals the one with the lowest validation loss.

    Args:
        model_name: ``"gcn"``, ``"gin"``, ``"gat"`` or ``"graphsage"``.
        benchmark: The data, with splits.
        seed: Fixes initial weights and the order of the graphs. The global random state is left as it was.
        recipe: The settings; by default those of :func:`recipe_for`.
        device: Where to train. The model is returned there.
        progress: Whether to show a progress bar.
        **changes: Single settings of the recipe to change, such as ``max_epochs=100``.

    Returns:
        The GNN of the best epoch with its accuracies and curves.
    """
    recipe = recipe_for(benchmark.name, model_name, benchmark.task) if recipe is None else recipe
    try:
        recipe = replace(recipe, **changes)
    except TypeError as error:
        raise ConfigError(
            f"A recipe has the settings {', '.join(asdict(recipe))} (got {', '.join(changes)})."
        ) from error
    device = _device(device)
    parts = splits(benchmark)
    if empty := [name for name in ("train", "val") if not len(parts[name])]:
        raise DatasetError(f"The split {empty} of '{benchmark.name}' is empty. Training needs both.")
    architecture = Architecture(
        model=model_name,
        task=benchmark.task,
        in_channels=benchmark.graphs[0].num_features,
        num_classes=benchmark.num_classes,
        hidden_channels=recipe.hidden_channels,
        normalization=recipe.normalization,
        padded_nodes=recipe.padded_nodes,
    )
    started = time.perf_counter()
    with torch.random.fork_rng(devices=[]):  # weights are drawn on the CPU, whatever the device
        torch.default_generator.manual_seed(seed)
        model = build(architecture)
        if recipe.centred:
            seen = _seen_in_training(benchmark, parts["train"])
            centre(model, seen.x, seen.edge_index)
        model.to(device)
        curves, best_epoch = _fit(model, _moved(benchmark, device), recipe, seed, progress)
    return TrainedModel(
        model=model.eval(),
        accuracies=accuracies(model, benchmark),
        curves=curves,
        best_epoch=best_epoch,
        seconds=time.perf_counter() - started,
        dataset=benchmark.name,
        facts={
            "seed": seed,
            "recipe": asdict(recipe),
            "source": benchmark.source,
            "provenance": benchmark.provenance,
            "best_epoch": best_epoch,
        },
    )


def _fit(
    model: NodeNetwork | GraphNetwork, benchmark: Benchmark, recipe: Recipe, seed: int, progress: bool
) -> tuple[dict[str, list[float]], int]:
    """Trains ``model`` in place, gives it its best weights, and returns the curves and the best epoch."""
    parts = splits(benchmark)
    val_truth = benchmark.labels(parts["val"]).to(next(model.parameters()).device)
    loader = None
    if benchmark.task == "graph":
        loader = DataLoader(
            [benchmark.graphs[i] for i in parts["train"].tolist()],
            batch_size=recipe.batch_size,
            shuffle=True,
            generator=torch.Generator().manual_seed(seed),
        )

    def losses(_epoch: int) -> Iterator[tuple[Tensor, int]]:
        for answer, truth in _predictions(model, benchmark, parts["train"], loader):
            yield nn.functional.cross_entropy(answer, truth), len(truth)

    def validate() -> tuple[float, float]:
        answer = logits(model, benchmark, members=parts["val"])
        accuracy = float((answer.argmax(dim=1) == val_truth).float().mean())
        return accuracy, float(nn.functional.cross_entropy(answer, val_truth))

    how = Descent(
        recipe.max_epochs, recipe.learning_rate, recipe.weight_decay, recipe.clip_norm, patience=recipe.patience
    )
    title = f"{benchmark.name} {model.architecture.model}" if progress else None
    return descend(model, how, losses, validate, title=title)


def _predictions(
    model: NodeNetwork | GraphNetwork, benchmark: Benchmark, members: Tensor, loader: DataLoader | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields logits and true classes of the training split: all nodes at once, or graphs batch by batch."""
    if loader is None:
        graph = benchmark.graphs[0]
        yield model(graph.x, graph.edge_index)[members], graph.y[members]
        return
    device = next(model.parameters()).device
    for batch in loader:
        batch = batch.to(device)
        yield model(batch.x, batch.edge_index, batch.batch), batch.y


def _seen_in_training(benchmark: Benchmark, members: Tensor) -> Data:
    """Returns what is seen while training: the graph of a node task, or the union of the training graphs."""
    if benchmark.task == "node":
        return benchmark.graphs[0]
    return Batch.from_data_list([benchmark.graphs[i] for i in members.tolist()])


def _moved(benchmark: Benchmark, device: torch.device) -> Benchmark:
    """Puts the graph of a node task on ``device``, once for all epochs; the caller's stays where it is."""
    if benchmark.task == "graph":
        return benchmark
    return replace(benchmark, graphs=[copy.copy(benchmark.graphs[0]).to(device)])


def _device(name: str | torch.device) -> torch.device:
    """Returns the device, or says that it is not there."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"'device' must be 'cpu' or 'cuda' (got {str(name)!r}).") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"'device' is {str(name)!r}, but no GPU can be used here. Pass device='cpu'.")
    return device
