"""A case of a bad input: what is tried, and what is right if it is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import NodeModel, random_graph

QUICK: dict[str, Any] = {"max_nodes": 3, "epochs": 2, "num_samples": 8}
NAN, INF = float("nan"), float("inf")
Case = tuple[str, Callable[[], object], Callable[[object], bool] | None]
"""What is tried, and what is right if it is taken; ``None`` if it must be refused."""


def explain(model: Any = None, data: Any = None, index: Any = 3, **more: Any) -> Any:
    """Explains a node of a small graph by a small model, or what is passed instead."""
    model = NodeModel() if model is None else model
    data = random_graph(10) if data is None else data
    return GFlowExplainer(**QUICK).explain(model, data, index, progress=False, **more)


def changed(**fields: Any) -> Data:
    """Returns the small graph with other fields."""
    data = random_graph(10)
    for name, value in fields.items():
        data[name] = value
    return data
