"""Statistics of a benchmark, and a table of generated, published and the paper's numbers side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.loading import GENERATORS, NAMES, load
from gflowbench.datasets.reference import CHECKSUMS, reference_folder

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


def side_by_side(seed: int = 0, root: Path | str | None = None) -> str:
    """Writes a Markdown table: each dataset as generated with defaults, as published, and in the paper.

    Published rows appear where the reference folder has the file; Graph-SST2 is built whole, which takes some
    seconds.

    Args:
        seed: Seed of the generated graphs.
        root: Folder of the published files; if ``None``, the reference folder.
    """
    folder = reference_folder() if root is None else Path(root)
    head = (
        "dataset",
        "from",
        "graphs",
        "nodes",
        "edges",
        "classes",
        "features",
        "motifs",
        "motif edges",
        "evaluated",
    )
    rows = [head, tuple("---" for _ in head)]
    for name in NAMES:
        if name in GENERATORS:
            rows.append(_row(name, f"generated, seed {seed}", statistics(load(name, "generated", seed=seed))))
        file = f"{name.replace('-', '_')}.npz"
        if folder is not None and file in CHECKSUMS and (folder / file).is_file():
            rows.append(_row(name, "published file", statistics(load(name, "published", root=folder))))
        if name == "graph-sst2" and folder is not None and (folder / "sst2_text.npz").is_file():
            built = load(name, "generated", root=folder, limit=None, edges="window", vectors="hashed")
            rows.append(_row(name, "sentences, window edges, hashed vectors", statistics(built)))
        graphs, nodes, edges, classes = PAPER[name]
        rows.append((name, "paper", *map(_number, (graphs, nodes, edges, classes)), "", "", "", ""))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(name: str, origin: str, found: Statistics) -> tuple[str, ...]:
    share = "" if found.motif_share is None else f"{100 * found.motif_share:.1f} %"
    counts = map(_number, (found.graphs, found.nodes, found.edges, found.classes, found.features, found.motifs))
    return (name, origin, *counts, share, _number(found.evaluated))


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
