"""Short names of data and code, so that what is stored is known to be of the same."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from gflowbench.datasets import Benchmark
from gflowexplainer.report.provenance import code_digest

_PACKAGE = "gflowbench.suites"
_TRAINING = ("citation", "gnn_fitting", "gnns", "null_cases")
_SHOWING = ("__init__",)


def task_digest(task: Benchmark) -> str:
    """Names the graphs of a task with their labels, and the code that trains GNNs on them."""
    digest = hashlib.sha256(code_digest(*(f"{_PACKAGE}.{name}" for name in _TRAINING)).encode())
    for graph in task.graphs:
        for tensor in (graph.x, graph.edge_index, graph.y):
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


@cache
def suites_code() -> str:
    """Names the code that makes tasks and cases, explains them by floors and peers, and scores them."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _SHOWING)
    return code_digest(*(f"{_PACKAGE}.{name}" for name in names))
