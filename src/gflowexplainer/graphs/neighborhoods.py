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

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.ops.hashed_random import mix
from gflowexplainer.ops.segments import pointers, segment_max, segment_sum, slices
from gflowexplainer.ops.sorting import find_sorted, order_of, unique, unique_groups

DAMPING = 0.85
_REACH = ("key", "relevance", "dropped")
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
        sent = [_senders(index, newest[rows], weight[rows])[:2] for rows in _chunks(index, newest)]
        found, value = (torch.cat(parts) for parts in zip((key[:0], relevance[:0]), *sent, strict=True))
        fresh = ~find_sorted(key, found)[1]
        found, value = found[fresh], value[fresh]
        if found.numel() == 0:
            break
        key, relevance = _merge(key, relevance, found, value)
        newest, weight = found, value
        if limit is not None:
            kept = _most_relevant(index, key, relevance, limit)
            dropped = torch.cat([dropped, key[~kept]])
            key, relevance = key[kept], relevance[kept]
            stays = find_sorted(key, found)[1]
            newest, weight = found[stays], value[stays]
    dropped = unique(dropped)
    return Reach(key, relevance, dropped[~find_sorted(key, dropped)[1]])


def everything(index: GraphIndex, count: int) -> Reach:
    """Takes all nodes of the graph, for each of ``count`` owners."""
    key = torch.arange(count * index.num_nodes, device=index.source.device)
    return Reach(key, torch.ones(key.numel(), dtype=torch.double, device=key.device), key[:0])


@dataclass(frozen=True)
class Surroundings:
    """Some nodes, whatever sends an edge to them, ``n`` nodes in all, and these ``e`` edges.

    Attributes:
        reach: All the nodes.
        inside: Positions among them of those that were surrounded.
        edge_index: Both ends of each edge as positions in ``reach.key``, shape ``[2, e]``; by owner and then in the
            user's order.
        edge_id: The user's id of each edge, shape ``[e]``.
    """

    reach: Reach
    inside: Tensor
    edge_index: Tensor
    edge_id: Tensor


def surround(index: GraphIndex, inner: Reach, limit: int | None = None) -> Surroundings:
    """Adds whatever sends an edge to the nodes of ``inner``; for each owner at most ``limit`` nodes more."""
    nothing = inner.key[:0]
    parts = [
        Surroundings(Reach(nothing, inner.relevance[:0], inner.dropped), nothing, nothing.new_zeros(2, 0), nothing)
    ]
    count = 0
    for rows in _chunks(index, inner.key):
        part = _surround_some(index, Reach(inner.key[rows], inner.relevance[rows], nothing), limit)
        parts.append(replace(part, inside=part.inside + count, edge_index=part.edge_index + count))
        count += part.reach.key.numel()
    key, relevance, dropped = (torch.cat([getattr(p.reach, name) for p in parts]) for name in _REACH)
    inside, edge_id = (torch.cat([getattr(p, name) for p in parts]) for name in ("inside", "edge_id"))
    ends = torch.cat([part.edge_index for part in parts], dim=1)
    return Surroundings(Reach(key, relevance, unique(dropped)), inside, ends, edge_id)


def _surround_some(index: GraphIndex, inner: Reach, limit: int | None) -> Surroundings:
    """Does that for some owners, whose incoming edges fit into memory."""
    sent = _senders(index, inner.key, inner.relevance)
    fresh = ~find_sorted(inner.key, sent.key)[1]
    found, value, dropped = sent.key[fresh], sent.relevance[fresh], inner.dropped
    if limit is not None:
        kept = _most_relevant(index, found, value, limit)
        dropped, found, value = found[~kept], found[kept], value[kept]
    outer = Reach(*_merge(inner.key, inner.relevance, found, value), dropped)
    inside = find_sorted(outer.key, inner.key)[0]
    place, there = find_sorted(outer.key, sent.key)
    arrives = torch.nonzero(there[sent.sender]).flatten()
    receiver, edge = sent.receiver[arrives], index.edge_id[sent.position[arrives]]
    rows = torch.stack([place[sent.sender[arrives]], inside[receiver], edge])
    first, last = _owners(index, inner.key)
    owner = inner.key[receiver] // index.num_nodes - first
    _, rank = unique_groups(owner * index.num_edges + edge, bound=(last + 1 - first) * index.num_edges)
    ordered = torch.empty_like(rows)
    ordered[:, rank] = rows
    return Surroundings(outer, inside, ordered[:2], ordered[2])


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


def _owners(index: GraphIndex, key: Tensor) -> tuple[int, int]:
    """Names the first and the last owner of ascending keys, of which there are some."""
    return int(key[0]) // index.num_nodes, int(key[-1]) // index.num_nodes


class _Senders(NamedTuple):
    """The different nodes that send edges to others, and ``e`` edges one by one.

    Attributes:
        key, relevance: Of each sender, by key, ascending.
        sender: Sender of each edge, shape ``[e]``.
        receiver: Which of the others it goes to, shape ``[e]``.
        position: Where it stands in the index, shape ``[e]``.
    """

    key: Tensor
    relevance: Tensor
    sender: Tensor
    receiver: Tensor
    position: Tensor


def _senders(index: GraphIndex, key: Tensor, relevance: Tensor) -> _Senders:
    """Finds the nodes that send an edge to ``key``, with their relevance by these edges."""
    node = key % index.num_nodes
    row, position = index.incoming(node)
    first, last = _owners(index, key)
    shift = first * index.num_nodes
    bound = (last + 1 - first) * index.num_nodes
    found, group = unique_groups((key - node - shift)[row] + index.source[position], bound=bound)
    share = (relevance / index.in_degree(node).clamp(min=1))[row]
    best = segment_max(relevance[row], group, found.numel())
    value = DAMPING * torch.minimum(segment_sum(share, group, found.numel()), best)
    return _Senders(found + shift, value, group, row, position)


def _merge(key: Tensor, value: Tensor, more: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Unites two ascending lists of keys that have none in common, and what belongs to each key."""
    key = torch.cat([key, more])
    order = order_of(key, runs=True)
    return key[order], torch.cat([value, values])[order]


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
