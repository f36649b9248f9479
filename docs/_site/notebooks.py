"""Runs the notebooks of ``examples`` in a folder of their own, with Cora from the reference folder if it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data, InMemoryDataset

from gflowbench.datasets.reference import reference_folder
from gflowbench.suites.citation import make_cora_task

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))
RAW = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def run_notebook(name: str, folder: Path, timeout: int = 900) -> Any:
    """Returns an executed notebook; it works in ``folder``."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    if name == "citation":
        place_cora(folder / "data")
    NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def place_cora(folder: Path) -> bool:
    """Puts Cora where PyG's ``Planetoid`` keeps it, so that nothing is downloaded; says whether it could."""
    if reference_folder() is None:
        return False
    task = make_cora_task(0)
    (graph,) = task.graphs
    data = Data(x=(graph.x > 0).float(), edge_index=graph.edge_index, y=graph.y)
    for split in ("train", "val", "test"):
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mask[task.splits[split]] = True
        data[f"{split}_mask"] = mask
    raw, processed = folder / "Cora" / "raw", folder / "Cora" / "processed"
    for place in (raw, processed):
        place.mkdir(parents=True, exist_ok=True)
    for name in RAW:  # only looked for, as what they say is processed already
        (raw / f"ind.cora.{name}").touch()
    InMemoryDataset.save([data], str(processed / "data.pt"))
    return True
