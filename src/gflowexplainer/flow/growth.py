"""Random growth that remembers nothing but where it ends, for what is measured before anything is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.flow.cpu_rows import added_rows, is_square
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.hashed_random import uniform, uniform_numbers
from gflowexplainer.ops.numpy_segments import boundaries, counted, flat_ranges
from gflowexplainer.ops.segments import pointers
from gflowexplainer.ops.sorting import unique

Array = NDArray[Any]
_BESIDE, _INSIDE = 1, 3
"""Marks in the row of a subgraph; what is inside and beside is inside."""
_NOT_BESIDE = np.zeros((), dtype=np.int16)


def grow_at_random(
    instances: Instances, instance: Tensor, start: Tensor | None, max_nodes: int, key: Tensor, width: int = 0
) -> Subgraphs:
    """Adds one neighbour after the other, each with equal chance, until there are ``max_nodes`` nodes or no more.

    That is where rollouts with the same keys end if they choose by
    :func:`~gflowexplainer.flow.sampling.grow_uniformly`; here no state on the way is built.

    Args:
        instances: The instances.
        instance: Instance of each subgraph, shape ``[R]``.
        start: Node that each begins with, shape ``[R]``; ``None`` begins with any node.
        max_nodes: Size bound.
        key: A random key of each, shape ``[R]``.
        width: Slots that members have at least; those beyond what is grown stay empty.
    """
    max_nodes = max(1, min(max_nodes, instances.largest))
    width = max(width, max_nodes)
    if instance.is_cpu:
        begin = None if start is None else start.numpy()
        return Subgraphs(
            instance, torch.from_numpy(_grow_on_cpu(instances, instance.numpy(), begin, max_nodes, width, key.numpy()))
        )
    total, count = instances.num_nodes, instance.numel()
    chance = uniform(key, torch.arange(max_nodes, device=key.device)[:, None], 0)
    if start is None:
        start = instances.ptr[instance] + (chance[0] * instances.node_counts[instance]).long()
        chance = chance[1:]
    members = torch.full((count, width), -1, device=instance.device)
    members[:, 0] = start
    # What each may gain next, as ascending numbers of subgraph and node.
    owner, node = instances.neighbors_of(start)
    border = owner * total + node
    for size in range(1, max_nodes):
        counts = torch.bincount(border // total, minlength=count)
        grows = torch.nonzero(counts).flatten()
        chosen = pointers(counts)[grows] + (chance[size - 1, grows] * counts[grows]).long()
        node = border[chosen] % total
        members[grows, size] = node
        owner, neighbor = instances.neighbors_of(node)
        owner = grows[owner]
        outside = ~(members[owner, : size + 1] == neighbor[:, None]).any(dim=1)
        left = torch.ones_like(border, dtype=torch.bool)
        left[chosen] = False
        border = unique(torch.cat([border[left], (owner * total + neighbor)[outside]]), runs=True)
    return Subgraphs(instance, members)


def _grow_on_cpu(
    instances: Instances, instance: Array, start: Array | None, max_nodes: int, width: int, key: Array
) -> Array:
    """Does the same by NumPy, with a row over the nodes of its instance for each subgraph: the members, ``[R, K]``."""
    chance = uniform_numbers(key, counted(max_nodes)[:, None], 0)
    if start is None:
        counts = instances.array("node_counts")[instance]
        start = instances.array("ptr")[instance] + (chance[0] * counts).astype(np.int64)
        chance = chance[1:]
    members = np.empty((instance.size, width), dtype=np.int64)
    members.fill(-1)
    members[:, 0] = start
    if is_square(instances):
        _fill_by_matrix(members[:, :max_nodes], added_rows(instances), chance)
    else:
        _fill_by_lists(members[:, :max_nodes], instances, instance, chance)
    return members


def _fill_by_matrix(members: Array, added: Array, chance: Array) -> None:
    """Adds one node after the other to subgraphs of one small instance, given what each adds to a row of links.

    Args:
        members: Members, of which the first is known, shape ``[R, K]``.
        added: The :func:`~gflowexplainer.flow.cpu_rows.added_rows` of the instance, shape ``[n, n]``.
        chance: A number in (0, 1) for each further node, shape ``[K - 1, R]`` at least.
    """
    count, width = members.shape[0], added.shape[0]
    node, begin = members[:, 0], counted(count + 1) * width
    # Which subgraphs still grow; all of them, mostly.
    grows: Array | slice = slice(None)
    table = np.zeros((count, width), dtype=np.int16)
    for size in range(1, members.shape[1]):
        table += added.take(node, axis=0)
        border = (table > _NOT_BESIDE).reshape(-1).nonzero()[0]
        first = border.searchsorted(begin)
        ways, first, row = first[1:] - first[:-1], first[:-1], begin[:-1]
        if np.count_nonzero(ways) < ways.size:
            some = ways.nonzero()[0]
            grows = some if isinstance(grows, slice) else grows.take(some)
            table, ways, first, row = (part.take(some, axis=0) for part in (table, ways, first, row))
            begin = begin[: some.size + 1]
            if not some.size:
                return
        node = border.take(first + (chance[size - 1][grows] * ways).astype(np.int64))
        node -= row
        members[grows, size] = node


def _fill_by_lists(members: Array, instances: Instances, instance: Array, chance: Array) -> None:
    """Does the same to subgraphs of instances of any number and size, ``instance`` ``[R]``, by their neighbours."""
    names = ("ptr", "node_counts", "neighbor_ptr", "degree", "neighbor")
    ptr, node_counts, neighbor_ptr, degree, neighbor = map(instances.array, names)
    counts = node_counts[instance]
    shift = np.cumsum(counts) - counts - ptr[instance]
    table = np.zeros(int(counts.sum()), dtype=np.int8)
    rows = np.repeat(np.arange(instance.size), counts)
    grows, node = np.arange(instance.size), members[:, 0]
    for size in range(1, members.shape[1]):
        owner, entry = flat_ranges(neighbor_ptr[node], degree[node])
        place = neighbor[entry] + shift[grows][owner]
        # What is inside stays inside, what was outside is now beside.
        table[place] |= _BESIDE
        table[node + shift[grows]] = _INSIDE
        border = np.flatnonzero(table == _BESIDE)
        ways = np.bincount(rows[border], minlength=instance.size)
        grows = np.flatnonzero(ways)
        if not grows.size:
            return
        chosen = boundaries(ways)[grows] + (chance[size - 1, grows] * ways[grows]).astype(np.int64)
        node = border[chosen] - shift[grows]
        members[grows, size] = node
