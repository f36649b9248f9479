"""A dataset that has a name: graphs, and perhaps a GNN to explain on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch_geometric.data import Data


def _nothing(graph: Data) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class NamedDataset:
    """Graphs, and perhaps a GNN to explain on them.

    Attributes:
        graphs: The graphs; exactly one at node level.
        level: ``"node"`` or ``"graph"``.
        index: Nodes, or positions of graphs, that are usually explained.
        model: The GNN, if one was wanted.
        classes: Names of the classes, if they have any.
        describe: What else is known of one of the graphs: ``labels`` of its nodes, ``smiles``.
    """

    graphs: list[Data]
    level: str
    index: list[int]
    model: nn.Module | None = None
    classes: tuple[str, ...] | None = None
    describe: Callable[[Data], dict[str, Any]] = field(default=_nothing)
