"""Datasets by name, with a GNN: one of our own, and those that other packages offer by an entry point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from torch import nn
from torch_geometric.data import Data

from gflowexplainer.errors import ConfigError

GROUP = "gflowexplainer.datasets"
"""Entry points of this group are functions ``(name, gnn, seed, progress) -> NamedDataset``; ``gnn`` may be ``None``."""


def _nothing(graph: Data) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class NamedDataset:
    """Graphs, and perhaps a GNN to explain on them.

    Attributes:
        graphs: The graphs; exactly one at node level.
        level: ``"node"`` or ``"graph"``.
        index: Nodes, or positions of graphs, that are usually explained.
        model: The GNN, if one was wanted.
        classes: Names of the classes, if they have any.
        describe: What else is known of one of the graphs: ``labels`` of its nodes, ``smiles``.
    """

    graphs: list[Data]
    level: str
    index: list[int]
    model: nn.Module | None = None
    classes: tuple[str, ...] | None = None
    describe: Callable[[Data], dict[str, Any]] = field(default=_nothing)


def load_dataset(name: str, *, gnn: str | None, seed: int, progress: bool) -> NamedDataset:
    """Loads a dataset that this or another installed package offers.

    Args:
        name: Its name; ``"karate"`` is always there.
        gnn: Which GNN to load with it; ``None`` for none.
        seed: Of what is generated or trained.
        progress: Whether training shows a progress bar.
    """
    if name == "karate":
        from gflowexplainer.sources.karate import karate_club

        return karate_club(seed=seed)
    offered = list(entry_points(group=GROUP))
    if not offered:
        raise ConfigError(
            f"'--dataset {name}' needs a package that has datasets. Install it with: pip install gflowbench; or name "
            "your own graphs with --data, or try --dataset karate."
        )
    return offered[0].load()(name, gnn=gnn, seed=seed, progress=progress)
