"""Datasets by name, with a GNN: the karate club, and those that other packages offer by an entry point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gflowexplainer.errors import ConfigError

GROUP = "gflowexplainer.datasets"
"""Entry points of this group are functions ``(name, gnn, seed, progress) -> NamedDataset``; ``gnn`` may be ``None``."""


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
    describe: Callable[[Data], dict[str, Any]] = field(default=lambda graph: {})


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


def karate_club(*, seed: int = 0, steps: int = 200) -> NamedDataset:
    """Loads the 34 members of Zachary's karate club and trains a GCN on four of them; takes a second, no download.

    Args:
        seed: Of the weights.
        steps: Updates of the training.
    """
    from torch_geometric.datasets import KarateClub
    from torch_geometric.nn import GCN

    (data,) = KarateClub()
    # The club split around its instructor and its administrator.
    data.node_names = [{0: "Mr. Hi", 33: "John A."}.get(node, str(node)) for node in range(data.num_nodes)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GCN(data.num_features, hidden_channels=16, num_layers=2, out_channels=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        scores = model(data.x, data.edge_index)
        nn.functional.cross_entropy(scores[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    classes = tuple(f"community {number}" for number in range(4))
    return NamedDataset([data], "node", list(range(data.num_nodes)), model.eval(), classes)
