"""The file of a fitted explainer: its arguments and all that was learned, as safetensors and JSON, no pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from torch_geometric.explain import ModelConfig

from gflowexplainer.errors import CheckpointError
from gflowexplainer.inference.fitted_state import FittedState
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.sampler import SamplerState
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.files import is_file
from gflowexplainer.training.checkpoint import CHECKPOINT
from gflowexplainer.training.checkpoint import EXPLAINER as FILE

KIND = "explainer"
OPTIONS = (
    *("num_samples", "num_hops", "certificate_limit", "memory_budget"),
    *("node_type", "edge_type", "remove_link"),
)
"""Arguments that are no settings, and stored with them."""

Made = TypeVar("Made")


def write_explainer(
    folder: str | Path, fitted: FittedState, preset: str, settings: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Stores an explainer in a folder.

    Args:
        folder: The folder.
        fitted: What was learned.
        preset: Name of the settings to begin with.
        settings: Settings that were changed.
        options: Arguments that are no settings, by name (:data:`OPTIONS`).
    """
    meta = {
        "kind": KIND,
        "preset": preset,
        "settings": dict(settings),
        **options,
        "model": fitted.model,
        "config": fitted.config,
        "identity": fitted.identity,
    }
    write_checkpoint(Path(folder) / FILE, fitted.sampler.sections(), meta)


def read_explainer(folder: str | Path, make: Callable[..., Made]) -> tuple[Made, FittedState]:
    """Reads an explainer that was stored in a folder.

    Args:
        folder: The folder.
        make: Makes an explainer of its arguments.

    Returns:
        The explainer, and what was learned.
    """
    path = Path(folder) / FILE
    if not is_file(path) and is_file(Path(folder) / CHECKPOINT):
        raise CheckpointError(
            f"'{folder}' holds a training that was not finished. Call fit with this folder to go on with it."
        )
    sections, meta = read_checkpoint(path)
    if meta.get("kind") != KIND:
        raise CheckpointError(f"'{path}' holds no explainer (but {meta.get('kind') or 'a training'}).")
    try:
        options = {name: meta[name] for name in OPTIONS}
        explainer = make(preset=meta["preset"], **options, **meta["settings"])
        config = config_to_dict(ModelConfig(**meta["config"]))
        fitted = FittedState(SamplerState.from_sections(sections), meta["model"], config, meta["identity"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"'{path}' holds an explainer of another version ({error}).") from error
    return explainer, fitted
