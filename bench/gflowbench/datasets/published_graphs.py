"""The published instances of the synthetic benchmarks, read from the reference folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.motif_truth import edges_of_motifs
from gflowbench.datasets.reference import CHECKSUMS, read_reference

MOTIF_SIZES = {"ba-shapes": 5, "ba-community": 5, "tree-cycles": 6, "tree-grid": 9, "ba-2motifs": 5}


def published(name: str, folder: Path | str | None = None) -> Benchmark:
    """Reads the published instance of one of the five synthetic benchmarks.

    Args:
        name: ``"ba-shapes"``, ``"ba-community"``, ``"tree-cycles"``, ``"tree-grid"`` or ``"ba-2motifs"``.
        folder: Folder with the files; if ``None``, the reference folder.

    Returns:
        The benchmark, with the evaluated instances of the published protocol.
    """
    file = name.replace("-", "_") + ".npz"
    arrays = read_reference(file, f'load("{name}", source="generated") generates a graph like it.', folder)
    read = _graph_task if name == "ba-2motifs" else _node_task
    return read(name, arrays, file_provenance(file))


def _node_task(name: str, arrays: dict[str, np.ndarray], provenance: str) -> Benchmark:
    data = Data(
        x=torch.from_numpy(arrays["x"]),
        edge_index=torch.from_numpy(arrays["edge_index"]),
        y=torch.from_numpy(arrays["y"]),
        edge_motif=torch.from_numpy(arrays["edge_label"].astype(bool)),
        motif_id=torch.from_numpy(arrays["motif_id"]),
        **{key: torch.from_numpy(arrays[key]) for key in ("train_mask", "val_mask", "test_mask")},
    )
    return Benchmark(
        name=name,
        task="node",
        graphs=[data],
        index=torch.from_numpy(arrays["eval_nodes"]),
        num_classes=int(data.y.max()) + 1,
        source="published",
        provenance=provenance,
        motif_size=MOTIF_SIZES[name],
    )


def _graph_task(name: str, arrays: dict[str, np.ndarray], provenance: str) -> Benchmark:
    graphs = unpack_graphs(
        arrays["node_ptr"],
        arrays["edge_ptr"],
        arrays["edge_index"],
        torch.from_numpy(arrays["x"]),
        torch.from_numpy(arrays["y"].astype(np.int64)),
    )
    for graph in graphs:
        graph.motif_id = torch.full((graph.num_nodes,), -1)
        graph.motif_id[20:] = 0
        # The 40 self loops of the file stay edges, but are no motif edges.
        graph.edge_motif = edges_of_motifs(graph.edge_index, graph.motif_id)
    return Benchmark(
        name=name,
        task="graph",
        graphs=graphs,
        index=torch.from_numpy(arrays["eval_graphs"]),
        num_classes=2,
        source="published",
        provenance=provenance,
        motif_size=MOTIF_SIZES[name],
        splits=named_splits(arrays["split"]),
    )


def unpack_graphs(
    node_ptr: np.ndarray, edge_ptr: np.ndarray, edge_index: np.ndarray, x: Tensor, y: Tensor, **more: Tensor
) -> list[Data]:
    """Cuts flat arrays into graphs.

    Args:
        node_ptr: Start of each graph's nodes, and the end, shape ``[G + 1]``.
        edge_ptr: Start of each graph's edges, and the end, shape ``[G + 1]``.
        edge_index: Edges with node ids local to the graph, shape ``[2, E]``.
        x: Features, shape ``[N, F]``.
        y: Labels, shape ``[G]``.
        **more: Further tensors, per node if the name ends in ``_id``, otherwise per edge.
    """
    edges = torch.from_numpy(edge_index.astype(np.int64))
    nodes_of, edges_of = np.diff(node_ptr).tolist(), np.diff(edge_ptr).tolist()
    columns = {"x": x.split(nodes_of), "edge_index": edges.split(edges_of, dim=1), "y": y.split(1)}
    for key, value in more.items():
        columns[key] = value.split(nodes_of if key.endswith("_id") else edges_of)
    rows = zip(*columns.values(), strict=True)
    return [Data(**dict(zip(columns, row, strict=True))) for row in rows]


def named_splits(split: np.ndarray) -> dict[str, Tensor]:
    """Positions of the train (0), validation (1) and test (2) graphs, from one number a graph."""
    return {
        key: torch.from_numpy(np.flatnonzero(split == number)) for number, key in enumerate(("train", "val", "test"))
    }


def file_provenance(file: str) -> str:
    """Says which file was read, with its checksum."""
    return f"published file {file}, SHA-256 {CHECKSUMS[file]}"
