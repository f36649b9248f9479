"""Cuts instances out of a graph on a CPU, by NumPy: what :meth:`~gflowexplainer.graphs.instances.Instances.cut` does.

For one node the general way is some hundred calls of torch, each of which takes longer to begin than to work. Here it
is some dozens of NumPy. Where nodes have to be left out because of the bound, relevance decides: that is left to the
general way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.graphs.arguments import slice_arguments
from gflowexplainer.graphs.checks import check_finite
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import WIDE, Instances
from gflowexplainer.ops.hashed_random import combine_numbers
from gflowexplainer.ops.numpy_segments import boundaries, flat_ranges, found_in, sorted_unique

Array = NDArray[Any]


class CutEdges(NamedTuple):
    """Nodes of ``I`` owners and the edges that end at them.

    Attributes:
        key: ``owner * N + node`` of the nodes of the instances, ascending, shape ``[n]``.
        outer: The same with whatever sends an edge to them, shape ``[o]``.
        inside: Where the former stand among the latter, shape ``[n]``.
        ends: Both ends of each edge as positions in ``outer``, shape ``[2, e]``; by owner, then in the user's order.
        edge_id: The user's id of each edge, shape ``[e]``.
        own: The edges that begin inside too, as positions in ``edge_id``.
        own_ends: Their ends as positions in ``key``, shape ``[2, .]``.
    """

    key: Array
    outer: Array
    inside: Array
    ends: Array
    edge_id: Array
    own: Array
    own_ends: Array


def cut_nodes(
    x: Tensor,
    graph_index: GraphIndex,
    nodes: Tensor,
    num_hops: int | None,
    *,
    limit: int | None = None,
    finite: bool = False,
    kinds: tuple[int, int] = (1, 1),
    arguments: Mapping[str, Any],
) -> Instances:
    """Cuts out the ``num_hops``-hop computation graph of each node in ``nodes``, in the fastest way there is.

    Args:
        x, graph_index, nodes, num_hops, limit: See :meth:`Instances.cut`.
        finite: Whether the features are known to be numbers.
        kinds: How many types of nodes and edges the graph has.
        arguments: Further arguments of the model.
    """
    found = None
    if x.device.type == "cpu" and num_hops is not None:
        found = find_edges(graph_index, nodes.numpy(), num_hops, limit)
    if found is None:
        cut = Instances.cut(x, graph_index, nodes, num_hops, limit=limit, **arguments)
        return replace(cut, num_types=kinds[0], num_relations=kinds[1])
    graph = _Graph(x, graph_index, arguments, nodes.numpy(), finite, kinds)
    around: dict[str, Any] = {}
    edges = torch.from_numpy(found.edge_id)
    if found.outer.size > found.key.size:
        outer = graph.assemble(found.outer, found.ends, edges, alone=False)
        around = {"surroundings": outer, "place_outside": torch.from_numpy(found.inside)}
        edges = edges[torch.from_numpy(found.own)]
    return graph.assemble(found.key, found.own_ends, edges, **around)


@dataclass(frozen=True)
class _Graph:
    """What instances are made from."""

    x: Tensor
    index: GraphIndex
    arguments: Mapping[str, Any]
    nodes: Array
    finite: bool
    kinds: tuple[int, int]

    def assemble(self, key: Array, ends: Array, edges: Tensor, *, alone: bool = True, **around: Any) -> Instances:
        """Makes instances of nodes ``key`` and the edges between them; without neighbours unless ``alone``."""
        count, total = self.nodes.size, self.index.num_nodes
        owner = key // total
        node = key - owner * total
        ids = torch.from_numpy(node)
        wide = self.x.size(1) > WIDE
        rows = self.x if wide else self.x.index_select(0, ids)
        if not self.finite:
            check_finite(self.x.index_select(0, ids) if wide else rows, ids)
        counts = np.bincount(owner, minlength=count)
        edge_counts = np.bincount(owner[ends[1]], minlength=count)
        start = np.arange(count) * total + self.nodes
        ptr, row, neighbor, pair = neighbor_lists(ends if alone else ends[:, :0], key.size)
        flat: dict[str, Array] = {
            "ptr": boundaries(counts),
            "center": np.searchsorted(key, start),
            "graph": np.zeros(count, dtype=np.int64),
            "edge_ptr": boundaries(edge_counts),
            "edge_index": ends,
            "neighbor_ptr": ptr,
            "neighbor": neighbor,
            "key": combine_numbers(np.zeros(1, dtype=np.int64), node),
        }
        fields: dict[str, Any] = {name: torch.from_numpy(array) for name, array in flat.items()}
        fields |= slice_arguments(self.arguments, total, self.index.num_edges, ids, edges) | around
        instances = Instances(
            level="node",
            node_id=ids,
            edge_id=edges,
            x=rows,
            x_row=ids if wide else None,
            num_types=self.kinds[0],
            num_relations=self.kinds[1],
            **fields,
        )
        # What is known already need not be found again.
        known = {"owner": owner, "node_counts": counts, "edge_counts": edge_counts, "degree": np.diff(ptr)}
        if alone:
            known |= {"neighbor_row": row, "neighbor_key": pair}
        vars(instances).update({name: torch.from_numpy(array) for name, array in known.items()})
        return instances


def find_edges(index: GraphIndex, nodes: Array, num_hops: int, limit: int | None) -> CutEdges | None:
    """Finds what ``nodes`` ``[I]`` depend on within ``num_hops`` steps; ``None`` where the bound leaves nodes out."""
    ptr, source, edge = index.ptr.numpy(), index.source.numpy(), index.edge_id.numpy()
    total, owners = index.num_nodes, nodes.size
    key = newest = np.arange(owners) * total + nodes
    for _ in range(num_hops):
        _, _, sender = _incoming(ptr, source, newest, total)
        found = sorted_unique(sender)
        newest = found[~found_in(key, found)[1]]
        if newest.size == 0:
            break
        key = np.sort(np.concatenate([key, newest]), kind="stable")
        if _too_many(key, total, owners, limit):
            return None
    receiver, position, sender = _incoming(ptr, source, key, total)
    place, there = found_in(key, sender)
    outside = sorted_unique(sender[~there])
    if _too_many(outside, total, owners, limit):
        return None
    edge_id = edge[position]
    # Edges of one owner stand behind each other already, by the node that they end at.
    order = np.argsort(edge_id if owners == 1 else key[receiver] // total * index.num_edges + edge_id)
    receiver, edge_id, there, place, sender = (part[order] for part in (receiver, edge_id, there, place, sender))
    own = np.flatnonzero(there)
    own_ends = np.stack([place[own], receiver[own]])
    if outside.size == 0:
        return CutEdges(key, key, np.arange(key.size), np.stack([place, receiver]), edge_id, own, own_ends)
    outer = np.sort(np.concatenate([key, outside]), kind="stable")
    inside = np.searchsorted(outer, key)
    ends = np.stack([np.searchsorted(outer, sender), inside[receiver]])
    return CutEdges(key, outer, inside, ends, edge_id, own, own_ends)


def _incoming(ptr: Array, source: Array, key: Array, total: int) -> tuple[Array, Array, Array]:
    """Lists the edges that end at ``key``: which of them, the position in the index, and the key of the sender."""
    node = key % total
    first = ptr[node]
    receiver, position = flat_ranges(first, ptr[node + 1] - first)
    return receiver, position, (key - node)[receiver] + source[position]


def _too_many(key: Array, total: int, owners: int, limit: int | None) -> bool:
    if limit is None or key.size <= limit:
        return False
    return bool(np.bincount(key // total, minlength=owners).max() > limit)


def neighbor_lists(ends: Array, total: int) -> tuple[Array, Array, Array, Array]:
    """Returns the undirected simple graph under edges ``[2, e]`` of ``total`` nodes.

    Returns:
        Row boundaries ``[n + 1]``, rows and neighbours ``[m]``, and the ascending keys of the entries, ``[m]``.
    """
    source, target = ends[:, ends[0] != ends[1]]
    both = sorted_unique(np.concatenate([source * total + target, target * total + source]))
    row = both // total
    return boundaries(np.bincount(row, minlength=total)), row, both - row * total, both
