"""The three motifs of the benchmarks, in the node order and with the labels of the published files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.datasets.motif_generator import CycleMotif, GridMotif, HouseMotif


@dataclass(frozen=True, eq=False)
class Motif:
    """A small graph to attach to a base; its node 0 is the one that is attached.

    Attributes:
        edges: Undirected edges, each once with the smaller node first, shape ``[E, 2]``.
        labels: Class of each node in node tasks, shape ``[K]``; 0 is the class of the base.
    """

    edges: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of nodes ``K``."""
        return len(self.labels)


def house() -> Motif:
    """Five nodes and six edges: a square with a roof. Labels by role: 1 middle, 2 bottom, 3 top."""
    structure = HouseMotif().structure
    return Motif(_once(structure.edge_index), structure.y.numpy() + 1)


def cycle(size: int) -> Motif:
    """A ring of ``size`` nodes, all labelled 1."""
    return Motif(_once(CycleMotif(size).structure.edge_index), np.ones(size, dtype=np.int64))


def grid() -> Motif:
    """Nine nodes in three rows of three, all labelled 1."""
    return Motif(_once(GridMotif().structure.edge_index), np.ones(9, dtype=np.int64))


def _once(edge_index: Tensor) -> NDArray[np.int64]:
    """Keeps one direction of every edge."""
    pairs = edge_index.t().numpy()
    return pairs[pairs[:, 0] < pairs[:, 1]]
