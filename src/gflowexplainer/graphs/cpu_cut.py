"""Cuts instances out of a graph on a CPU, by NumPy: what :meth:`~gflowexplainer.graphs.instances.Instances.cut` does.

For one node the general way is some hundred calls of torch, each of which takes longer to begin than to work. Here it
is some dozens of NumPy. Where nodes have to be left out because of the bound, relevance decides: that is left to the
general way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.graphs.arguments import slice_arguments
from gflowexplainer.graphs.checks import check_finite
from gflowexplainer.graphs.cpu_reach import Wider, find_edges
from gflowexplainer.graphs.flat_graphs import WIDE
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.deferred import Deferred
from gflowexplainer.ops.hashed_random import combine_integers, combine_numbers
from gflowexplainer.ops.numpy_segments import boundaries, sorted_unique

Array = NDArray[Any]


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
    if found.wider is not None:
        outer = Deferred(partial(graph.surroundings, found.wider))
        if not finite:
            outer.value  # noqa: B018 - what is wrong with features is said at once
        around = {"around": outer, "place_outside": torch.from_numpy(found.wider.inside)}
    return graph.assemble(found.key, found.ends, found.edge_id, **around)


@dataclass(frozen=True)
class _Graph:
    """What instances are made from."""

    x: Tensor
    index: GraphIndex
    arguments: Mapping[str, Any]
    nodes: Array
    finite: bool
    kinds: tuple[int, int]

    def surroundings(self, wider: Wider) -> Instances:
        """Makes what surrounds instances, for the model alone."""
        return self.assemble(wider.reached.keys(), wider.ends(), wider.edge_id, alone=False)

    def assemble(self, key: Array, ends: Array, edge_id: Array, *, alone: bool = True, **around: Any) -> Instances:
        """Makes instances of nodes ``key`` and the edges between them; without neighbours unless ``alone``."""
        count, total = self.nodes.size, self.index.num_nodes
        owner = key // total if count > 1 else np.zeros(key.size, dtype=np.int64)
        node = key - owner * total if count > 1 else key
        ids, edges = torch.from_numpy(node), torch.from_numpy(edge_id)
        wide = self.x.size(1) > WIDE
        rows = self.x if wide else self.x.index_select(0, ids)
        if not self.finite:
            check_finite(self.x.index_select(0, ids) if wide else rows, ids)
        counts = np.bincount(owner, minlength=count)
        edge_counts = np.bincount(owner[ends[1]], minlength=count)
        start = np.arange(count) * total + self.nodes if count > 1 else self.nodes
        ptr, row, neighbor, pair = neighbor_lists(ends if alone else ends[:, :0], key.size)
        flat: dict[str, Array] = {
            "ptr": boundaries(counts),
            "center": key.searchsorted(start),
            "graph": np.zeros(count, dtype=np.int64),
            "edge_ptr": boundaries(edge_counts),
            "edge_index": ends,
            "neighbor_ptr": ptr,
            "neighbor": neighbor,
            "key": self.index.node_keys(node),
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
        known = {"node_id": node, "edge_id": edge_id, "owner": owner, "node_counts": counts, "edge_counts": edge_counts}
        known["degree"] = ptr[1:] - ptr[:-1]
        if alone:
            known |= {"neighbor_row": row, "neighbor_key": pair, "own_key": self._own_keys()}
        vars(instances).update(largest=int(counts.max()), _arrays=flat | known)
        return instances

    def _own_keys(self) -> Array:
        """Returns the :attr:`Instances.own_key` of the nodes, shape ``[I]``."""
        if self.nodes.size == 1:
            return np.array([combine_integers(0, int(self.nodes[0]), 1)])
        return combine_numbers(0, self.nodes, 1)


def neighbor_lists(ends: Array, total: int) -> tuple[Array, Array, Array, Array]:
    """Returns the undirected simple graph under edges ``[2, e]`` of ``total`` nodes.

    Returns:
        Row boundaries ``[n + 1]``, rows and neighbours ``[m]``, and the ascending keys of the entries, ``[m]``.
    """
    source, target = ends
    loop = source == target
    if np.count_nonzero(loop):
        source, target = ends[:, ~loop]
    both = sorted_unique(np.concatenate([source * total + target, target * total + source]), total * total)
    row = both // total
    return boundaries(np.bincount(row, minlength=total)), row, both - row * total, both
