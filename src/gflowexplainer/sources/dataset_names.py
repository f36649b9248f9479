"""Datasets by name, with a GNN: one of our own, and those that other packages offer by an entry point."""

from __future__ import annotations

from importlib.metadata import entry_points

from gflowexplainer.errors import ConfigError
from gflowexplainer.sources.karate import karate_club
from gflowexplainer.sources.named_datasets import NamedDataset

GROUP = "gflowexplainer.datasets"
"""Entry points of this group are functions ``(name, gnn, seed, progress) -> NamedDataset``; ``gnn`` may be ``None``."""


def load_dataset(name: str, *, gnn: str | None, seed: int, progress: bool) -> NamedDataset:
    """Loads a dataset that this or another installed package offers.

    Args:
        name: Its name; ``"karate"`` is always there.
        gnn: Which GNN to load with it; ``None`` for none.
        seed: Of what is generated or trained.
        progress: Whether training shows a progress bar.
    """
    if name == "karate":
        return karate_club(seed=seed)
    offered = list(entry_points(group=GROUP))
    if not offered:
        raise ConfigError(
            f"'--dataset {name}' needs a package that has datasets. Install it with: pip install gflowbench; or name "
            "your own graphs with --data, or try --dataset karate."
        )
    return offered[0].load()(name, gnn=gnn, seed=seed, progress=progress)
