"""The six published datasets with their published GNNs as tasks of the suites: is what is shown the motif?

They have no two halves: settings were found on them. A seed draws which of the protocol's instances are explained
where there are more than are wanted, and is the explainer's own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.utils import k_hop_subgraph

from gflowbench.datasets import Benchmark, load
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.models import load_published
from gflowbench.suites.gnn_fitting import split_score

GNN = "published"
NAMES = ("ba-shapes", "ba-community", "tree-cycles", "tree-grid", "ba-2motifs", "mutagenicity")
_LAYERS = 3


def make_published_task(name: str, seed: int, folder: Path | str | None = None) -> Benchmark:
    """Reads a published dataset; the truth of an instance is the motif that it belongs to.

    Args:
        name: One of :data:`NAMES`.
        seed: Orders the instances.
        folder: Folder of the published files; by default the reference folder.

    Returns:
        The task. Where a graph has several motifs, each alone decides its class.
    """
    benchmark = load(name, "published", root=folder)
    order = torch.randperm(len(benchmark.index), generator=torch.Generator().manual_seed(seed))
    truths = {instance: _truth(benchmark, instance) for instance in benchmark.index.tolist()}
    index = benchmark.index[order]
    return replace(benchmark, index=index, splits={"test": index}, truths=truths, num_layers=_LAYERS)


def load_published_gnn(task: Benchmark, folder: Path | str | None = None) -> tuple[nn.Module, float]:
    """Returns the published GNN of a task, and its accuracy on the protocol's instances."""
    model = load_published(task.name, folder)
    return model, split_score(model, task)


def _truth(benchmark: Benchmark, instance: int) -> TaskTruth:
    """Returns the motif of an explained node, as far as the GNN sees it from there, or the motifs of a graph."""
    graph = benchmark.graphs[0 if benchmark.task == "node" else instance]
    motif: Tensor = graph.motif_id
    if benchmark.task == "node":
        seen = k_hop_subgraph(instance, _LAYERS, graph.edge_index, num_nodes=motif.numel())[0]
        own = seen[motif[seen] == motif[instance]]
        number, motif = motif[instance], torch.full_like(motif, -1)
        motif[own] = number
    numbers = motif[motif >= 0].unique().tolist()
    parts = tuple(tuple((motif == number).nonzero().view(-1).tolist()) for number in numbers)
    return TaskTruth(motif.numel(), Combination.ANY if parts else Combination.NONE, parts)
