"""Barabási-Albert graphs by preferential attachment: millions of nodes, or thousands of copies at once.

Every new node chooses ``m`` different older nodes, each with probability proportional to its degree. A node
of degree d occurs d times among the ends of the edges so far, so a choice by degree is a uniform choice of an
earlier edge end (Batagelj and Brandes, 2005). Such references can be drawn for many nodes at once, and one
that refers to another chosen end is resolved by pointer doubling. Nodes are drawn in blocks that double in
size, so that the time is linear in the number of edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def preferential_attachment(num_nodes: int, edges_per_node: int, rng: np.random.Generator, copies: int = 1) -> Integers:
    """Draws Barabási-Albert graphs.

    As in networkx, the start is a star: node ``m`` is connected to all of ``0 .. m - 1``. A choice that one
    node makes twice is drawn again, for all nodes of a block at once, until there is none.

    Args:
        num_nodes: Nodes ``n`` of each graph.
        edges_per_node: Edges ``m`` that each new node brings, ``1 <= m < n``.
        rng: Source of randomness.
        copies: Number of independent graphs.

    Returns:
        Undirected edges (newer node, older node), shape ``[copies, (n - m) * m, 2]``.
    """
    newer = np.repeat(np.arange(edges_per_node, num_nodes), edges_per_node)
    older = np.empty((copies, len(newer)), dtype=np.int64)
    older[:, :edges_per_node] = np.arange(edges_per_node)
    start = edges_per_node
    while start < len(newer):
        stop = min(2 * start, len(newer))
        # Ends 2e and 2e + 1 belong to edge e; a node may refer to the ends of edges that older nodes brought.
        bound = np.tile(2 * edges_per_node * (newer[start:stop] - edges_per_node), (copies, 1))
        reference = rng.integers(0, bound)
        older[:, start:stop] = _resolve(reference, older, start, edges_per_node)
        while (again := _repeated(older[:, start:stop], edges_per_node)).any():
            reference[again] = rng.integers(0, bound[again])
            older[:, start:stop] = _resolve(reference, older, start, edges_per_node)
        start = stop
    return np.stack([np.broadcast_to(newer, older.shape), older], axis=-1)


def _resolve(reference: Integers, older: Integers, start: int, edges_per_node: int) -> Integers:
    """Finds the nodes that stand at edge ends.

    Args:
        reference: Edge ends that the choices of a block refer to, shape ``[copies, W]``.
        older: Choices of all edges; those before ``start`` are final, shape ``[copies, E]``.
        start: First edge of the block.
        edges_per_node: ``m``.

    Returns:
        Nodes, shape ``[copies, W]``.
    """
    copies, width = reference.shape
    edge, chosen = reference // 2, reference % 2 == 1
    final = np.take_along_axis(older, np.minimum(edge, start - 1), axis=1)
    node = np.where(chosen, final, edges_per_node + edge // edges_per_node).reshape(-1)
    position = np.arange(copies * width).reshape(copies, width)
    pending = chosen & (edge >= start)
    pointer = np.where(pending, edge - start + position[:, :1], position).reshape(-1)
    waiting = np.flatnonzero(pending)
    while len(waiting):
        further = pointer[pointer[waiting]]
        moved = further != pointer[waiting]
        pointer[waiting] = further
        waiting = waiting[moved]
    return node[pointer].reshape(copies, width)


def _repeated(choices: Integers, edges_per_node: int) -> NDArray[np.bool_]:
    """Flags every choice that an earlier choice of the same node equals. Shape ``[copies, W]``."""
    each = choices.reshape(len(choices), -1, edges_per_node)
    flags = np.zeros(each.shape, dtype=bool)
    for place in range(1, edges_per_node):
        flags[..., place] = (each[..., :place] == each[..., place, None]).any(axis=-1)
    return flags.reshape(choices.shape)
