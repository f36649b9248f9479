"""The user's graph: an index of its edges that is built once, and what is refused before it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.segments import pointers, ranges


@dataclass(frozen=True)
class GraphIndex:
    """The incoming edges of every node, in compressed rows; built once in O(E), then shared by all cuts.

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

    def incoming(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Lists the incoming edges of ``nodes``: position in ``nodes`` and position in this index, per edge."""
        return ranges(self.ptr[nodes], self.ptr[nodes + 1] - self.ptr[nodes])


def check_features(x: Tensor, where: str = "the graph") -> int:
    """Refuses features that are no ``[N, F]`` floats; returns the number of nodes."""
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
        got = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise InstanceError(f"The features of {where} must be a float tensor [num_nodes, width] (got {got}).")
    if x.size(0) == 0:
        raise InstanceError(f"There is nothing to explain: {where} has no nodes.")
    if not torch.isfinite(x).all():
        row = int(torch.nonzero(~torch.isfinite(x).all(dim=1))[0])
        raise InstanceError(f"The features of {where} hold NaN or infinity, first at node {row}. Clean them first.")
    return x.size(0)


def check_edges(edge_index: Tensor, num_nodes: int, where: str = "the graph") -> None:
    """Refuses an ``edge_index`` that is no ``[2, E]`` tensor of valid node ids."""
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        got = tuple(edge_index.shape) if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise InstanceError(f"'edge_index' of {where} must be a tensor of shape [2, num_edges] (got {got}).")
    if edge_index.dtype != torch.long:
        raise InstanceError(f"'edge_index' of {where} must be int64 (got {edge_index.dtype}). Call .long() on it.")
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < num_nodes:
        worst = edge_index[(edge_index < 0) | (edge_index >= num_nodes)][0]
        raise InstanceError(
            f"'edge_index' names node {int(worst)}, but {where} has {num_nodes} nodes. "
            f"Every id must lie in [0, {num_nodes})."
        )


def rows_of(name: str, value: object, num_nodes: int, num_edges: int) -> str | None:
    """Says whether an argument of the model has one row a ``"node"``, one an ``"edge"``, or neither (``None``).

    Where a graph has as many nodes as edges, a name that begins with "edge" decides.
    """
    rows = value.size(0) if isinstance(value, Tensor) and value.dim() > 0 else -1
    if rows == num_edges and (name.startswith("edge") or rows != num_nodes):
        return "edge"
    return "node" if rows == num_nodes else None


def check_index(index: Tensor | Sequence[int] | int, num_nodes: int, device: torch.device) -> Tensor:
    """Turns ids into a tensor ``[I]``, or says which one does not exist."""
    try:
        nodes = torch.as_tensor(index, device=device).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'index' must hold node ids (got {index!r}).") from error
    if nodes.dtype == torch.bool:
        if nodes.numel() != num_nodes:
            raise InstanceError(
                f"'index' is a mask of {nodes.numel()} entries, but the graph has {num_nodes} nodes. Pass one a node."
            )
        nodes = torch.nonzero(nodes).flatten()
    if nodes.numel() == 0:
        raise InstanceError("'index' is empty. Pass at least one node id.")
    if nodes.is_floating_point() or nodes.is_complex():
        raise InstanceError(f"'index' must hold whole numbers (got {nodes.dtype}). Call .long() on it.")
    nodes = nodes.long()
    wrong = nodes[(nodes < 0) | (nodes >= num_nodes)]
    if wrong.numel():
        raise InstanceError(
            f"'index' names node {int(wrong[0])}, but the graph has {num_nodes} nodes. Pass ids in [0, {num_nodes})."
        )
    return nodes
