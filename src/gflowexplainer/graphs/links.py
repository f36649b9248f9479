"""Links to explain: pairs of nodes, checked, and instances whose subgraphs have to join both ends.

An explanation of a link is a connected subgraph that holds both ends. It grows from the first end, and as long as the
second is missing, only nodes may join after which it can still be reached in time. So every subgraph that growth ends
in is connected and holds both, and none has to be thrown away. "In time" is a bound on the number of nodes in which the
ends are joined: a shortest way and :data:`DETOUR` nodes more, or the bound on the size of explanations where every
subgraph counts alike. Once the ends are joined, any neighbour may join, so that longer ways and several ways at once
appear as well.

Connected means what it means for nodes: along edges, whatever their direction. Where no way joins the ends inside the
instance, or only one that is longer than explanations may be, both ends are taken as neighbours, and ``joined`` says
so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.segments import Array, pointers
from gflowexplainer.ops.sorting import unique

DETOUR = 1
"""Nodes by which a way that joins both ends of a link may be longer than a shortest one, before others are added."""


def check_links(pairs: Any, counts: tuple[int, int], device: torch.device, *, same_type: bool = True) -> Tensor:
    """Turns pairs of node ids into a tensor ``[2, I]``, or says which one cannot be explained.

    Args:
        pairs: Ids of both ends, shape ``[2, I]``.
        counts: Nodes that there are for the first and the second end.
        device: Where the graph is.
        same_type: Whether equal ids mean the same node.
    """
    try:
        ends = torch.as_tensor(pairs, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'edge_label_index' must hold pairs of node ids (got {pairs!r}).") from error
    if ends.dim() == 1 and ends.numel() == 2:
        ends = ends[:, None]
    if ends.dim() != 2 or ends.size(0) != 2 or ends.dtype not in (torch.long, torch.int32):
        raise InstanceError(
            f"'edge_label_index' must be a tensor of whole numbers, shape [2, num_links] (got {ends.dtype} of shape "
            f"{tuple(ends.shape)})."
        )
    ends = ends.long()
    if ends.size(1) == 0:
        raise InstanceError("'edge_label_index' is empty. Pass at least one link.")
    for row, count in zip(ends, counts, strict=True):
        wrong = row[(row < 0) | (row >= count)]
        if wrong.numel():
            raise InstanceError(
                f"'edge_label_index' names node {int(wrong[0])}, but there are {count} nodes at that end. "
                f"Pass ids in [0, {count})."
            )
    same = torch.nonzero(ends[0] == ends[1]).flatten() if same_type else ends[0, :0]
    if same.numel():
        raise InstanceError(
            f"Link {int(same[0])} begins and ends at node {int(ends[0, same[0]])}. Pass two different nodes."
        )
    return ends


def is_link(
    ends: Tensor, relations: Tensor | None = None, edge_type: Tensor | None = None
) -> Callable[[Array, Array, Array], Array]:
    """Returns a rule that marks the edges between both ends of links ``[2, I]``, in either direction.

    Args:
        ends: Both ends of each link, in the flat graph.
        relations: Numbers of the relations that count; all if ``None``.
        edge_type: Relation of each edge of the flat graph, where ``relations`` are given.
    """
    pairs = ends.cpu().numpy()

    def marks(owner: Array, joins: Array, edge: Array) -> Array:
        mine = pairs[:, owner]
        found = (joins == mine).all(axis=0) | (joins == mine[::-1]).all(axis=0)
        if relations is not None and edge_type is not None:
            few = found.nonzero()[0]
            found[few] = torch.isin(edge_type[torch.from_numpy(edge[few])], relations).cpu().numpy()
        return found

    return marks


def join_ends(instances: Instances, bound: int, *, detour: int | None = DETOUR) -> Instances:
    """Settles within how many nodes both ends are to be joined, and makes neighbours of those that cannot be.

    Args:
        instances: Instances of links.
        bound: Nodes that an explanation may have.
        detour: Nodes beyond a shortest way; ``None`` for as many as the bound leaves room for.
    """
    assert instances.other_end is not None
    nodes = instances.hops_to_other_end[instances.center] + 1
    joined = nodes <= bound
    apart = torch.nonzero(~joined).flatten()
    if apart.numel():
        one, other, total = instances.center[apart], instances.other_end[apart], instances.num_nodes
        both = unique(torch.cat([instances.neighbor_key, one * total + other, other * total + one]))
        instances = replace(
            instances,
            neighbor_ptr=pointers(torch.bincount(both // total, minlength=total)),
            neighbor=both % total,
        )
        nodes = torch.where(joined, nodes, 2)
    within = torch.full_like(nodes, bound) if detour is None else (nodes + detour).clamp(max=bound)
    return replace(instances, joined=joined, within=within)
