"""The paper's datasets and GNNs for ``--dataset`` of ``fit`` and ``explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gflowbench.datasets import NAMES, load
from gflowbench.protocol import problem
from gflowexplainer.errors import one_of
from gflowexplainer.report import smiles_of
from gflowexplainer.sources.datasets import NamedDataset
from gflowexplainer.sources.smiles import ATOMS

CLASSES = {"mutagenicity": ("mutagen", "no mutagen"), "graph-sst2": ("negative", "positive")}
FOLDER = Path("runs") / "gnns"
"""Where GNNs that are trained are kept."""


def load_named(name: str, *, gnn: str | None, seed: int, progress: bool) -> NamedDataset:
    """Loads a dataset of the paper and, if wanted, its ``"published"`` or a ``"trained"`` GNN."""
    one_of("dataset", name, ("karate", *NAMES))  # that one is the library's own, and loaded by it
    model: Any = None
    if gnn is None:
        benchmark = load(name)
        index = benchmark.index
    else:
        loaded = problem(name, gnn, seed=seed, weights=FOLDER, progress=progress).load()
        benchmark, model, index = loaded.benchmark, loaded.model, loaded.index
    more = {"describe": _molecule} if name == "mutagenicity" else {}
    return NamedDataset(benchmark.graphs, benchmark.task, index.tolist(), model, CLASSES.get(name), **more)


def _molecule(graph: Data) -> dict[str, Any]:
    """Writes a graph of Mutagenicity as elements and SMILES."""
    names = [ATOMS[number] for number in graph.x.argmax(dim=1).tolist()]
    orders = graph.edge_type + 1 if "edge_type" in graph else None
    return {"labels": names, "smiles": smiles_of(names, graph.edge_index.cpu(), orders)}
