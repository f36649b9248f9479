"""Cora, a real citation graph without a truth of explanations, and the two-layer GNNs that are explained on it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.datasets.reference import read_reference
from gflowbench.models.descent import Descent
from gflowbench.suites.gnn_fitting import fit_gnn
from gflowbench.suites.gnns import SuiteGNN
from gflowbench.suites.halves import nodes_of_seed

FILE = "cora.npz"
GNNS = ("gcn", "graphsage", "gat")
_SHAPE = {"hidden_channels": 32, "num_layers": 2, "dropout": 0.6, "normalized": False, "mean": True}
_SCHEDULE = Descent(epochs=150, learning_rate=1e-2, weight_decay=5e-4, good_enough=0.0)


def make_cora_task(seed: int, folder: Path | str | None = None) -> Benchmark:
    """Reads Cora with its usual split; the test nodes are those that ``seed`` explains.

    Args:
        seed: Chooses the test nodes (:mod:`gflowbench.suites.halves`).
        folder: Folder of ``cora.npz``; by default the reference folder.

    Returns:
        A node task without truths. Features are the words of a paper, each row with sum 1.
    """
    arrays = read_reference(FILE, "Planetoid's files 'ind.cora.*' hold the same graph.", folder)
    counts = torch.from_numpy(arrays["word_ptr"]).long().diff()
    rows = torch.arange(len(counts)).repeat_interleave(counts)
    x = torch.zeros(len(counts), int(arrays["num_words"]))
    x[rows, torch.from_numpy(arrays["word_indices"]).long()] = 1
    x /= x.sum(dim=1, keepdim=True).clamp(min=1)
    masks = {name: torch.from_numpy(arrays[f"{name}_mask"]) for name in ("train", "val", "test")}
    splits: dict[str, Tensor] = {name: mask.nonzero().view(-1) for name, mask in masks.items()}
    y = torch.from_numpy(arrays["y"]).long()
    explained = nodes_of_seed(splits["test"], seed)
    return Benchmark(
        name="cora",
        task="node",
        graphs=[Data(x=x, edge_index=torch.from_numpy(arrays["edge_index"]).long(), y=y)],
        index=explained,
        splits=splits,
        source="published",
        num_classes=int(y.max()) + 1,
        num_layers=2,
        provenance=f"Planetoid's Cora, test nodes of seed {seed}",
    )


def fit_cora_gnn(gnn: str, task: Benchmark, seed: int) -> tuple[SuiteGNN, float]:
    """Trains a two-layer GNN on the 140 training papers; returns it with its accuracy on all 1000 test papers."""
    return fit_gnn(gnn, task, seed, _SCHEDULE, **_SHAPE)
