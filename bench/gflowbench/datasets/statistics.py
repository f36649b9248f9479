"""Statistics of a benchmark, and what the paper prints of its datasets."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gflowbench.datasets.benchmark import Benchmark

# Table "Dataset statistics" of the paper, edges in both directions; Graph-SST2 from the text.
PAPER: dict[str, tuple[int, int | None, int | None, int]] = {
    "ba-shapes": (1, 700, 4110, 4),
    "ba-community": (1, 1400, 8920, 8),
    "tree-cycles": (1, 871, 1950, 2),
    "tree-grid": (1, 1231, 3410, 2),
    "ba-2motifs": (1000, 25000, 51392, 2),
    "mutagenicity": (4337, 131488, 266894, 2),
    "graph-sst2": (70042, None, None, 2),
}


@dataclass(frozen=True)
class Statistics:
    """Counts over all graphs of a benchmark; edges count once for each direction.

    ``motifs`` and ``motif_share`` (motif edges among all edges) are ``None`` without ground truth.
    """

    graphs: int
    nodes: int
    edges: int
    classes: int
    features: int
    self_loops: int
    evaluated: int
    motifs: int | None
    motif_share: float | None


def statistics(benchmark: Benchmark) -> Statistics:
    """Counts what is in a benchmark."""
    graphs = benchmark.graphs
    edges = sum(graph.num_edges for graph in graphs)
    truth = benchmark.has_ground_truth
    motif_edges = sum(int(graph.edge_motif.sum()) for graph in graphs) if truth else 0
    return Statistics(
        graphs=len(graphs),
        nodes=sum(int(graph.num_nodes or 0) for graph in graphs),
        edges=edges,
        classes=benchmark.num_classes,
        features=graphs[0].num_features,
        self_loops=sum(int((graph.edge_index[0] == graph.edge_index[1]).sum()) for graph in graphs),
        evaluated=len(benchmark.index),
        motifs=sum(len(torch.unique(graph.motif_id[graph.motif_id >= 0])) for graph in graphs) if truth else None,
        motif_share=motif_edges / max(edges, 1) if truth else None,
    )
