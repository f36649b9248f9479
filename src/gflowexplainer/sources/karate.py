"""Zachary's karate club and a GCN that is trained on it: a first example that needs no download."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gflowexplainer.sources.named_datasets import NamedDataset

CLASSES = ("community 0", "community 1", "community 2", "community 3")
MEMBERS = {0: "Mr. Hi", 33: "John A."}
"""The two members that are known by name: the instructor and the administrator, around whom the club split."""


def karate_club(*, seed: int = 0, steps: int = 200) -> NamedDataset:
    """Loads the 34 members of the club and trains a GCN on the four whose community is given; takes a second.

    Args:
        seed: Of the weights.
        steps: Updates of the training.
    """
    from torch_geometric.datasets import KarateClub
    from torch_geometric.nn import GCN

    (data,) = KarateClub()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GCN(data.num_features, hidden_channels=16, num_layers=2, out_channels=len(CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        scores = model(data.x, data.edge_index)
        nn.functional.cross_entropy(scores[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    every = list(range(data.num_nodes))
    return NamedDataset([data], "node", every, model.eval(), CLASSES, _describe)


def _describe(graph: Data) -> dict[str, Any]:
    return {"labels": [MEMBERS.get(node, str(node)) for node in range(graph.num_nodes)]}
