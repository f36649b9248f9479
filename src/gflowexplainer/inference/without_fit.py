"""Without a fit: whether an instance is searched or trained on by itself, and the settings of that short training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gflowexplainer.choices import Inference
from gflowexplainer.errors import ConfigError, InstanceError
from gflowexplainer.settings import SEARCH_SETTINGS, Settings

ALONE: dict[str, Any] = {
    "objective": "log_partition_variance",
    "epochs": 20,
    "max_updates": 0,
    "rollouts": 32,
    "descents": 4,
    "learning_rate": 0.03,
    "epsilon": 0.2,
    "node_identities": True,
}
"""Settings of the short training on one instance that replaces a missing fit; what the user sets goes before.

Every value that matters is named, as those that are best for many instances are not for one.
"""
MOST_ALONE = 100
"""Predictions that one call of PyG's ``Explainer`` explains without ``index`` and without a fit."""


def settings_alone(preset: str, changes: Mapping[str, Any]) -> Settings:
    """Returns the settings of the training on one instance: those of a preset, with what the user has changed."""
    return Settings.preset(preset, **{**({} if preset == "paper" else ALONE), **changes})


def way_of(inference: str, level: str, preset: str, changes: Mapping[str, Any], *, fitted: bool) -> Inference:
    """Returns how subgraphs are found: by the network or by a search.

    Args:
        inference: What the user chose; ``"auto"`` leaves it to what else is known.
        level: ``"node"``, ``"graph"`` or ``"edge"``.
        preset: Name of the settings to begin with.
        changes: Settings that the user has changed.
        fitted: Whether there is a trained network.
    """
    if inference != Inference.auto:
        return Inference(inference)
    untrained = not fitted and preset in ("default", "gpu") and SEARCH_SETTINGS.issuperset(changes)
    return Inference.search if untrained and level != "edge" else Inference.flow


def refuse_search(inference: str, level: str) -> None:
    """Refuses to search for explanations of links."""
    if inference == Inference.search and level == "edge":
        raise ConfigError(
            "inference='search' grows from one node, but an explanation of a link joins both its ends. Use 'flow'."
        )


def refuse_very_many(count: int) -> None:
    """Refuses to explain very many predictions one after the other that nobody has named."""
    if count > MOST_ALONE:
        raise InstanceError(
            f"No 'index' means all {count} predictions, and each would be explained by itself. Pass the "
            "'index' of those to explain, or call 'fit' first."
        )
