"""Trained GNNs as files: safetensors that say what they hold, written whole or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gflowbench.models.architecture import Architecture
from gflowbench.models.model_accuracy import Accuracy
from gflowbench.models.networks import GraphNetwork, NodeNetwork, build
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.storage.files import write_bytes

FORMAT = "gflowexplainer-gnn-1"


def save_weights(
    path: str | os.PathLike[str],
    model: NodeNetwork | GraphNetwork,
    *,
    dataset: str = "",
    accuracies: Mapping[str, Accuracy] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a GNN with everything needed to rebuild it. An interrupted write leaves the old file as it was.

    Args:
        path: The file; its folder is made if need be.
        model: A GNN of this package.
        dataset: Name of the data it was trained on.
        accuracies: Right answers on each split.
        facts: Anything else worth keeping that JSON can hold, such as the seed.

    Returns:
        The path written.
    """
    if not isinstance(model, NodeNetwork | GraphNetwork):
        raise ConfigError(f"Only GNNs of this package can be saved (got {type(model).__name__}).")
    path = Path(path)
    metadata = {
        "format": FORMAT,
        "architecture": model.architecture.to_json(),
        "dataset": json.dumps(dataset),
        "accuracies": json.dumps({name: [int(n) for n in pair] for name, pair in (accuracies or {}).items()}),
        "facts": json.dumps(dict(facts or {}), sort_keys=True),
    }
    write_bytes(path, save({k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}, metadata))
    return path


def load_weights(path: str | os.PathLike[str]) -> NodeNetwork | GraphNetwork:
    """Rebuilds a GNN that :func:`save_weights` wrote, on the CPU and in eval mode."""
    path = Path(path)
    tensors, metadata = read_safetensors(path)
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"'{path}' holds no GNN of this package (format {metadata.get('format')!r}, not '{FORMAT}'). "
            "Write one with save_weights, or with 'python -m gflowbench.models train --out FILE'."
        )
    try:
        architecture = Architecture.from_json(metadata.get("architecture", ""))
    except ConfigError as error:
        raise CheckpointError(f"'{path}' describes no GNN that can be built. {error}") from error
    return fill(architecture, tensors, path)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns what a file of :func:`save_weights` says about its GNN.

    Returns:
        ``architecture``, ``dataset``, ``accuracies`` (an :class:`Accuracy` for each split) and ``facts``.
    """
    _, metadata = read_safetensors(Path(path))
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"'{path}' holds no GNN of this package (format {metadata.get('format')!r}).")
    try:
        return {
            "architecture": Architecture.from_json(metadata["architecture"]),
            "dataset": json.loads(metadata["dataset"]),
            "accuracies": {n: Accuracy(*pair) for n, pair in json.loads(metadata["accuracies"]).items()},
            "facts": json.loads(metadata["facts"]),
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(f"The description inside '{path}' is damaged: {error!r}.") from error


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Returns the tensors and the metadata of a safetensors file."""
    if not path.is_file():
        raise CheckpointError(f"There is no file '{path}'.")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"'{path}' is no safetensors file, or is damaged: {error}.") from error


def fill(architecture: Architecture, tensors: Mapping[str, Tensor], path: Path) -> NodeNetwork | GraphNetwork:
    """Builds a GNN with the weights ``tensors`` that were read from ``path``, in eval mode."""
    with torch.random.fork_rng(devices=[]):  # the fresh weights are drawn only to be replaced
        model = build(architecture)
    try:
        model.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise CheckpointError(f"The weights in '{path}' do not fit the GNN they should belong to: {error}.") from error
    return model.eval()
