"""Short names of data and code, so that what is stored is known to be of what it is asked for."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import gflowexplainer as library
from gflowbench.suites.task import SuiteTask

_LETTERS = 12
_TRAINING = ("citation.py", "gnn_fitting.py", "gnns.py", "null_cases.py")
_SHOWING = ("__main__.py", "ours.py", "table.py")


def task_digest(task: SuiteTask) -> str:
    """Names the graphs of a task with their labels, and the code that trains GNNs on them."""
    digest = hashlib.sha256(_code(Path(__file__).parent, _TRAINING).encode())
    for graph in task.graphs:
        for tensor in (graph.x, graph.edge_index, graph.y):
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()[:_LETTERS]


@lru_cache
def suites_code() -> str:
    """Names the code that makes tasks and cases, explains them by floors and peers, and scores them."""
    folder = Path(__file__).parent
    names = sorted(path.name for path in folder.glob("*.py") if path.name not in _SHOWING)
    return _code(folder, names)


@lru_cache
def library_code() -> str:
    """Names the code of the library."""
    folder = Path(library.__file__).parent
    return _code(folder, sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py")))


def _code(folder: Path, names: list[str] | tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + (folder / name).read_bytes())
    return digest.hexdigest()[:_LETTERS]
