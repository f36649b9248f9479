"""Arguments that a model takes beside features and edges: which go with the nodes, which with the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowexplainer.errors import InstanceError


def rows_of(name: str, value: object, num_nodes: int, num_edges: int) -> str | None:
    """Returns whether an argument of the model has one row a ``"node"``, one an ``"edge"``, or neither (``None``).

    Where a graph has as many nodes as edges, a name that begins with "edge" decides.
    """
    rows = value.size(0) if isinstance(value, Tensor) and value.dim() > 0 else -1
    if rows == num_edges and (name.startswith("edge") or rows != num_nodes):
        return "edge"
    return "node" if rows == num_nodes else None


def slice_arguments(
    arguments: Mapping[str, Any], num_nodes: int, num_edges: int, node_id: Tensor, edge_id: Tensor
) -> dict[str, dict[str, Any]]:
    """Sorts arguments of the model into per-node, per-edge and shared ones, and cuts the first two."""
    sorted_out: dict[str, dict[str, Any]] = {"node_arguments": {}, "edge_arguments": {}, "shared_arguments": {}}
    for name, value in arguments.items():
        kind = rows_of(name, value, num_nodes, num_edges)
        part = {"node": node_id, "edge": edge_id}.get(kind or "")
        sorted_out[f"{kind or 'shared'}_arguments"][name] = value if part is None else value[part]
    return sorted_out


def join_arguments(
    graphs: Sequence[Data], names: Sequence[str], node_counts: list[int], edge_counts: list[int]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Puts the arguments ``names`` of graphs behind each other: those with one row a node, those with one an edge."""
    node_arguments, edge_arguments = {}, {}
    for name in names:
        values: list[Any] = [getattr(graph, name, None) for graph in graphs]
        rows = [value.size(0) if isinstance(value, Tensor) and value.dim() else -1 for value in values]
        if rows == edge_counts and (name.startswith("edge") or rows != node_counts):
            edge_arguments[name] = torch.cat(values)
        elif rows == node_counts:
            node_arguments[name] = torch.cat(values)
        else:
            fits = zip(rows, node_counts, edge_counts, strict=True)
            number = next((i for i, (row, n, e) in enumerate(fits) if row not in (n, e)), 0)
            got = "no such tensor" if rows[number] < 0 else f"{rows[number]} rows"
            raise InstanceError(
                f"'{name}' must be a tensor with one row a node, or one row an edge, in every graph "
                f"(graph {number} has {node_counts[number]} nodes, {edge_counts[number]} edges and {got})."
            )
    return node_arguments, edge_arguments
