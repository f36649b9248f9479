"""The index of a graph: the incoming edges of every node, built once and shared by all that is cut out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.errors import CheckpointError, InstanceError
from gflowexplainer.graphs.checks import check_edges
from gflowexplainer.ops.segments import Array, pointers
from gflowexplainer.storage.files import write_file

_MAGIC, _VERSION = 0x7845776F6C4647, 1
_HEADER = 4
_COMPARED = 64


@dataclass(frozen=True)
class GraphIndex:
    """The incoming edges of every node, in compressed rows; built once in O(E), then shared by all cuts.

    .. code-block:: python

        index = GraphIndex.build(data.edge_index, data.num_nodes)
        index.save("graph.npy")
        index = GraphIndex.open("graph.npy")  # reads nothing: the file is mapped into memory
        algorithm.explain(model, data, index=[3, 14], graph_index=index)

    It lies in main memory, wherever the graph is.

    Attributes:
        ptr: Row boundaries, shape ``[N + 1]``.
        source: Source node of each incoming edge, shape ``[E]``, sorted by target.
        edge_id: Position of that edge in the user's ``edge_index``, shape ``[E]``.
    """

    ptr: Array
    source: Array
    edge_id: Array

    @classmethod
    def build(cls, edge_index: Tensor, num_nodes: int) -> GraphIndex:
        """Sorts the edges by target node."""
        check_edges(edge_index, num_nodes)
        order = torch.argsort(edge_index[1], stable=True)
        counts = torch.bincount(edge_index[1], minlength=num_nodes)
        return cls(*(part.cpu().numpy() for part in (pointers(counts), edge_index[0][order], order)))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph."""
        return self.ptr.size - 1

    @property
    def num_edges(self) -> int:
        """Number of edges of the graph."""
        return self.source.size

    def in_degree(self, nodes: Array) -> Array:
        """Counts the incoming edges of ``nodes``."""
        return self.ptr[nodes + 1] - self.ptr[nodes]

    def save(self, path: str | Path) -> None:
        """Stores the index in one file, whole or not at all: an array of int64 in NumPy's format."""
        head = np.array([_MAGIC, _VERSION, self.num_nodes, self.num_edges])
        parts = (head, self.ptr, self.source, self.edge_id)

        def write(file: BinaryIO) -> None:
            length = sum(part.size for part in parts)
            np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (length,)})
            for part in parts:
                file.write(np.ascontiguousarray(part, dtype="<i8").data)

        write_file(Path(path), write)

    @classmethod
    def open(cls, path: str | Path) -> GraphIndex:
        """Maps a stored index into memory; only what is used of it is read, and nothing is written back."""
        try:
            content = np.asarray(np.lib.format.open_memmap(path, mode="r"))
        except FileNotFoundError as error:
            raise CheckpointError(f"There is no index '{path}'. Make one with GraphIndex.build and save.") from error
        except (OSError, ValueError) as error:
            raise CheckpointError(f"The index '{path}' is damaged ({error}). Build it again.") from error
        found = content[:_HEADER].tolist() if content.dtype == np.int64 and content.ndim == 1 else []
        if found[:2] != [_MAGIC, _VERSION]:
            raise CheckpointError(f"'{path}' holds no index of a graph. Make one with GraphIndex.build and save.")
        number, edges = found[2:]
        if content.size != _HEADER + number + 1 + 2 * edges or content[_HEADER + number] != edges:
            raise CheckpointError(f"The index '{path}' is damaged: it has not the length it says. Build it again.")
        return cls(*np.split(content[_HEADER:], [number + 1, number + 1 + edges]))

    def refuse_another(self, edge_index: Tensor, num_nodes: int) -> None:
        """Refuses a graph that this index was not built from, by its size and by some of its edges."""
        there, here = (self.num_nodes, self.num_edges), (num_nodes, edge_index.size(1))
        if there != here:
            raise InstanceError(
                f"'graph_index' was built for a graph of {there[0]} nodes and {there[1]} edges, but this one has "
                f"{here[0]} nodes and {here[1]} edges. Build it from the same graph."
            )
        if self.num_edges == 0:
            return
        some = np.linspace(0, self.num_edges - 1, min(_COMPARED, self.num_edges)).astype(np.int64)
        ends = np.array((self.source[some], self.ptr.searchsorted(some, side="right") - 1))
        if not np.array_equal(edge_index[:, torch.from_numpy(self.edge_id[some])].cpu().numpy(), ends):
            raise InstanceError("'graph_index' was built from other edges. Build it from the same graph.")
