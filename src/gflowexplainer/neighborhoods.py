r"""Which nodes a prediction depends on: found along incoming edges and, where they are too many, by relevance.

The relevance of a node to the explained one is, up to damping, the probability that a random walk from the explained
node against the edges comes by on the shortest way: in expectation that is how much of a node's features arrives at
the explained node in a network that averages over neighbours. It is capped by that of the next node on the way,

.. math:: r(u) = d \, \min\Big( \sum_{u \to v} \frac{r(v)}{\deg(v)}, \; \max_{u \to v} r(v) \Big), \qquad d = 0.85,

the sum over nodes :math:`v` one step nearer, so that it falls along every way outwards and the most relevant nodes are
always connected to the explained one. A neighbour of a hub shares its relevance with all the others and goes first.

Node sets of many explained nodes are sorted lists of *keys*, ``owner * N + node``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.graph_index import GraphIndex
from gflowexplainer.noise import mix
from gflowexplainer.segments import find_sorted, pointers, segment_max, segment_sum, slices

DAMPING = 0.85
_ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Reach:
    """The nodes that ``I`` owners depend on, ``n`` in all.

    Attributes:
        key: ``owner * N + node``, ascending, shape ``[n]``.
        relevance: In (0, 1], shape ``[n]``.
        dropped: Keys of nodes that were seen and left out, ascending.
    """

    key: Tensor
    relevance: Tensor
    dropped: Tensor


def reach(index: GraphIndex, start: Tensor, num_hops: int, limit: int | None = None) -> Reach:
    """Follows incoming edges for ``num_hops`` steps.

    Args:
        index: The graph.
        start: Keys to begin with, ascending.
        num_hops: Number of steps.
        limit: Nodes that an owner keeps at most, the most relevant ones. What is left out is not followed further.
    """
    key, relevance = start, torch.ones(start.numel(), dtype=torch.double, device=start.device)
    newest, weight, dropped = key, relevance, key[:0]
    for _ in range(num_hops):
        found, value = _senders(index, newest, weight)
        fresh = ~find_sorted(key, found)[1]
        found, value = found[fresh], value[fresh]
        if found.numel() == 0:
            break
        key, order = torch.cat([key, found]).sort()
        relevance = torch.cat([relevance, value])[order]
        if limit is not None:
            kept = _most_relevant(index, key, relevance, limit)
            dropped = torch.cat([dropped, key[~kept]])
            key, relevance = key[kept], relevance[kept]
        place, stays = find_sorted(key, found)
        newest, weight = found[stays], relevance[place[stays]]
    dropped = torch.unique(dropped)
    return Reach(key, relevance, dropped[~find_sorted(key, dropped)[1]])


def surround(index: GraphIndex, inner: Reach, limit: int | None = None) -> Reach:
    """Adds whatever sends an edge to the nodes of ``inner``; for each owner at most ``limit`` nodes more."""
    found, value = _senders(index, inner.key, inner.relevance)
    fresh = ~find_sorted(inner.key, found)[1]
    found, value = found[fresh], value[fresh]
    dropped = inner.dropped
    if limit is not None:
        kept = _most_relevant(index, found, value, limit)
        dropped = torch.unique(torch.cat([dropped, found[~kept]]))
        found, value = found[kept], value[kept]
    key, order = torch.cat([inner.key, found]).sort()
    return Reach(key, torch.cat([inner.relevance, value])[order], dropped)


def edges_between(index: GraphIndex, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Lists the edges from nodes ``source`` to nodes ``target`` of the same owner, both keys, ascending.

    Returns:
        Both ends as positions in ``source``, shape ``[2, e]``, and the user's id of each edge, shape ``[e]``; by owner
        and then in the user's order. ``target`` must be among ``source``.
    """
    size = index.num_nodes
    place = find_sorted(source, target)[0]
    ends, ids = [], []
    for rows in _chunks(index, target):
        row, position = index.incoming(target[rows] % size)
        key = target[rows][row]
        begin, inside = find_sorted(source, key - key % size + index.source[position])
        ends.append(torch.stack([begin, place[rows][row]])[:, inside])
        ids.append(index.edge_id[position[inside]])
    if not ids:
        return target.new_zeros(2, 0), target.new_zeros(0)
    both, edge = torch.cat(ends, dim=1), torch.cat(ids)
    order = torch.argsort(edge, stable=True)
    order = order[torch.argsort(source[both[1, order]] // size, stable=True)]
    return both[:, order], edge[order]


def _chunks(index: GraphIndex, key: Tensor) -> list[slice]:
    """Cuts keys into parts of whole owners whose incoming edges fit into memory, one owner at least."""
    if key.numel() == 0:
        return []
    size = index.num_nodes
    owner = key // size
    first = int(owner[0])
    edges = segment_sum(index.in_degree(key % size), owner - first, int(owner[-1]) - first + 1)
    bounds = torch.arange(edges.numel() + 1, device=key.device) + first
    begin = torch.searchsorted(key, bounds * size).tolist()
    return [slice(begin[part.start], begin[part.stop]) for part in slices(edges, _ENTRIES_AT_ONCE)]


def _senders(index: GraphIndex, key: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the nodes that send an edge to ``key``: their keys, ascending, and their relevance by these edges."""
    size = index.num_nodes
    keys, values = [key[:0]], [relevance[:0]]
    for rows in _chunks(index, key):
        node = key[rows] % size
        row, position = index.incoming(node)
        found, group = torch.unique((key[rows] - node)[row] + index.source[position], return_inverse=True)
        share = (relevance[rows] / index.in_degree(node).clamp(min=1))[row]
        best = segment_max(relevance[rows][row], group, found.numel())
        keys.append(found)
        values.append(DAMPING * torch.minimum(segment_sum(share, group, found.numel()), best))
    return torch.cat(keys), torch.cat(values)


def _most_relevant(index: GraphIndex, key: Tensor, relevance: Tensor, limit: int) -> Tensor:
    """Marks the ``limit`` most relevant nodes of each owner, shape ``[n]``; of equal ones, arbitrary but fixed."""
    owner = key // index.num_nodes
    counts = torch.bincount(owner)
    if counts.numel() == 0 or int(counts.max()) <= limit:
        return torch.ones_like(key, dtype=torch.bool)
    order = torch.argsort(mix(key % index.num_nodes))
    order = order[torch.argsort(relevance[order], descending=True, stable=True)]
    order = order[torch.argsort(owner[order], stable=True)]
    rank = torch.arange(key.numel(), device=key.device) - pointers(counts)[owner[order]]
    kept = torch.empty_like(key, dtype=torch.bool)
    kept[order] = rank < limit
    return kept
