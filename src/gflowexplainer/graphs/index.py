"""The index of a graph: the incoming edges of every node, built once and shared by all that is cut out of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.errors import CheckpointError, InstanceError
from gflowexplainer.graphs.checks import check_edges
from gflowexplainer.ops.hashed_random import combine_numbers
from gflowexplainer.ops.segments import pointers, ranges
from gflowexplainer.storage.files import write_file

_MAGIC, _VERSION = 0x7845776F6C4647, 1
_HEADER = 4
_COMPARED = 64
_TABLE = 1 << 16
"""Nodes up to which the random numbers of all of them are kept."""


@dataclass(frozen=True)
class GraphIndex:
    """The incoming edges of every node, in compressed rows; built once in O(E), then shared by all cuts.

    .. code-block:: python

        index = GraphIndex.build(data.edge_index, data.num_nodes)
        index.save("graph.npy")
        index = GraphIndex.open("graph.npy")  # reads nothing: the file is mapped into memory
        algorithm.explain(model, data, index=[3, 14], graph_index=index)

    Attributes:
        ptr: Row boundaries, shape ``[N + 1]``.
        source: Source node of each incoming edge, shape ``[E]``, sorted by target.
        edge_id: Position of that edge in the user's ``edge_index``, shape ``[E]``.
    """

    ptr: Tensor
    source: Tensor
    edge_id: Tensor

    @classmethod
    def build(cls, edge_index: Tensor, num_nodes: int) -> GraphIndex:
        """Sorts the edges by target node."""
        check_edges(edge_index, num_nodes)
        order = torch.argsort(edge_index[1], stable=True)
        counts = torch.bincount(edge_index[1], minlength=num_nodes)
        return cls(pointers(counts), edge_index[0][order], order)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph."""
        return self.ptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of edges of the graph."""
        return self.source.numel()

    def node_keys(self, nodes: NDArray[Any]) -> NDArray[Any]:
        """Returns a random 64-bit number of each node ``[n]``, which depends on its id alone; looked up if few."""
        if self.num_nodes > _TABLE:
            return combine_numbers(0, nodes)
        return self._every_key[nodes]

    @cached_property
    def _every_key(self) -> NDArray[Any]:
        return combine_numbers(0, np.arange(self.num_nodes))

    def in_degree(self, nodes: Tensor) -> Tensor:
        """Counts the incoming edges of ``nodes``."""
        return self.ptr[nodes + 1] - self.ptr[nodes]

    def incoming(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Lists the incoming edges of ``nodes``: position in ``nodes`` and position in this index, per edge."""
        return ranges(self.ptr[nodes], self.in_degree(nodes))

    def save(self, path: str | Path) -> None:
        """Stores the index in one file, whole or not at all: an array of int64 in NumPy's format."""
        head = torch.tensor([_MAGIC, _VERSION, self.num_nodes, self.num_edges])
        parts = [part.cpu().contiguous().numpy() for part in (head, self.ptr, self.source, self.edge_id)]

        def write(file: BinaryIO) -> None:
            length = sum(part.size for part in parts)
            np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (length,)})
            for part in parts:
                file.write(part.astype("<i8", copy=False).data)

        write_file(Path(path), write)

    @classmethod
    def open(cls, path: str | Path) -> GraphIndex:
        """Maps a stored index into memory; only what is used of it is read, and nothing is written back."""
        try:
            # Copy on write: torch refuses arrays that cannot be written to, and the file stays as it is.
            content = np.lib.format.open_memmap(path, mode="c")
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
        whole = torch.from_numpy(content)
        return cls(*whole[_HEADER:].split([number + 1, edges, edges]))

    def to(self, device: torch.device | str) -> GraphIndex:
        """Moves the index to where the graph is."""
        return GraphIndex(self.ptr.to(device), self.source.to(device), self.edge_id.to(device))

    def refuse_another(self, edge_index: Tensor, num_nodes: int) -> None:
        """Refuses a graph that this index was not built from, by its size and by some of its edges."""
        there, here = (self.num_nodes, self.num_edges), (num_nodes, edge_index.size(1))
        if there != here:
            raise InstanceError(
                f"'graph_index' was built for a graph of {there[0]} nodes and {there[1]} edges, but this one has "
                f"{here[0]} nodes and {here[1]} edges. Build it from the same graph."
            )
        if self.source.device != edge_index.device:
            raise InstanceError(
                f"'graph_index' is on {self.source.device}, but the graph on {edge_index.device}. "
                "Move it with graph_index.to."
            )
        if self.num_edges == 0:
            return
        some = torch.linspace(0, self.num_edges - 1, min(_COMPARED, self.num_edges), device=edge_index.device).long()
        ends = torch.stack([self.source[some], torch.searchsorted(self.ptr, some, right=True) - 1])
        if not torch.equal(edge_index[:, self.edge_id[some]], ends):
            raise InstanceError("'graph_index' was built from other edges. Build it from the same graph.")
