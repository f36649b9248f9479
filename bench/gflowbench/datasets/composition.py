"""Base graph + motifs + noise edges, as flat arrays: the construction that all synthetic benchmarks share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gflowbench.datasets.motifs import Motif
from gflowexplainer.errors import ConfigError

Integers = NDArray[np.int64]


@dataclass
class Composition:
    """A graph under construction, with its undirected edges in any order.

    Attributes:
        edges: Undirected edges, each once with the smaller node first, shape ``[E, 2]``.
        marked: Whether an edge belongs to a motif, shape ``[E]``.
        motif_id: Motif of each node, -1 in the base, shape ``[N]``.
        labels: Class of each node, shape ``[N]``.
        anchors: Base node each motif is attached to, shape ``[M]``.
    """

    edges: Integers
    marked: NDArray[np.bool_]
    motif_id: Integers
    labels: Integers
    anchors: Integers

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``N``."""
        return len(self.motif_id)

    def add(self, pairs: Integers) -> None:
        """Adds unmarked edges, shape ``[P, 2]``."""
        self.edges = np.concatenate([self.edges, np.sort(pairs, axis=1)])
        self.marked = np.concatenate([self.marked, np.zeros(len(pairs), dtype=bool)])

    def to_data(self) -> Data:
        """Both directions of every edge in row-major order, labels and ground truth; features come later."""
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        order = np.argsort(both[:, 0] * self.num_nodes + both[:, 1])
        return Data(
            edge_index=torch.from_numpy(np.ascontiguousarray(both[order].T)),
            y=torch.from_numpy(self.labels),
            edge_motif=torch.from_numpy(np.tile(self.marked, 2)[order]),
            motif_id=torch.from_numpy(self.motif_id),
        )


def attach(base: Integers, num_base_nodes: int, motif: Motif, anchors: Integers) -> Composition:
    """Joins node 0 of each motif to one node of the base by an edge.

    Args:
        base: Undirected edges of the base, shape ``[E, 2]``.
        num_base_nodes: Nodes of the base; they keep the ids ``0 .. num_base_nodes - 1``.
        motif: The motif; copy ``i`` gets the next ``motif.size`` ids.
        anchors: Base node of each of the ``M`` copies, shape ``[M]``.
    """
    num_motifs = len(anchors)
    first = num_base_nodes + np.arange(num_motifs) * motif.size
    inner = (first[:, None, None] + motif.edges).reshape(-1, 2)
    links = np.stack([anchors, first], axis=1)
    return Composition(
        edges=np.concatenate([np.sort(base, axis=1), inner, links]),
        marked=np.repeat([False, True, False], [len(base), len(inner), len(links)]),
        motif_id=np.concatenate(
            [np.full(num_base_nodes, -1, dtype=np.int64), np.repeat(np.arange(num_motifs), motif.size)]
        ),
        labels=np.concatenate([np.zeros(num_base_nodes, dtype=np.int64), np.tile(motif.labels, num_motifs)]),
        anchors=anchors,
    )


def attach_each(bases: Integers, num_base_nodes: int, motif: Motif, anchors: Integers) -> list[Data]:
    """Joins one motif to each of many bases of equal size, all at once.

    Args:
        bases: Undirected edges of the ``G`` bases, shape ``[G, E, 2]``.
        num_base_nodes: Nodes of each base; the motif gets the ids after them.
        motif: The motif.
        anchors: Base node that node 0 of the motif is joined to, shape ``[G]``.

    Returns:
        ``G`` graphs as :meth:`Composition.to_data` gives them, but without labels.
    """
    count = len(bases)
    inner = np.broadcast_to(num_base_nodes + motif.edges, (count, *motif.edges.shape))
    links = np.stack([anchors, np.full(count, num_base_nodes)], axis=1)[:, None]
    edges = np.concatenate([bases, inner, links], axis=1)
    both = np.concatenate([edges, edges[:, :, ::-1]], axis=1)
    order = np.argsort(both[..., 0] * (num_base_nodes + motif.size) + both[..., 1], axis=1)
    edge_index = np.ascontiguousarray(np.take_along_axis(both, order[..., None], axis=1).transpose(0, 2, 1))
    marked = np.repeat([False, True, False], [bases.shape[1], len(motif.edges), 1])
    motif_id = np.repeat([-1, 0], [num_base_nodes, motif.size])
    return [
        Data(edge_index=edge_index, edge_motif=edge_motif, motif_id=nodes)
        for edge_index, edge_motif, nodes in zip(
            torch.from_numpy(edge_index),
            torch.from_numpy(np.tile(marked, 2)[order]),
            torch.from_numpy(motif_id).repeat(count, 1),
            strict=True,
        )
    ]


def place_anchors(num_base_nodes: int, num_motifs: int, attachment: str, rng: np.random.Generator) -> Integers:
    """Chooses the base node of each motif, shape ``[num_motifs]``.

    ``"spaced"`` takes every ``num_base_nodes // num_motifs``-th base node, as the published files do;
    ``"random"`` draws a base node uniformly for each motif.
    """
    if attachment == "random":
        return rng.integers(0, num_base_nodes, num_motifs)
    return np.arange(num_motifs) * max(num_base_nodes // num_motifs, 1) % num_base_nodes


def add_noise(graph: Composition, share: float, rng: np.random.Generator) -> None:
    """Adds ``int(share * edges)`` random edges, nowhere twice and never inside a motif, in place.

    The published files have no noise inside a motif either; there it would blur the ground truth.
    """
    everything = (0, graph.num_nodes)
    graph.add(draw_pairs(graph, int(share * len(graph.edges)), everything, everything, rng))


def draw_pairs(
    graph: Composition, count: int, left: tuple[int, int], right: tuple[int, int], rng: np.random.Generator
) -> Integers:
    """Draws different pairs of nodes that are not connected and not in one motif.

    Args:
        graph: The graph so far.
        count: Number of pairs.
        left: First node of a pair: at least, below.
        right: Second node of a pair: at least, below.
        rng: Source of randomness.

    Returns:
        Pairs, smaller node first, shape ``[count, 2]``.
    """
    size = graph.num_nodes
    _check_room(graph, count, left, right)
    taken = np.sort(graph.edges[:, 0] * size + graph.edges[:, 1])
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        more = count - len(drawn)
        pair = np.stack([rng.integers(*left, more), rng.integers(*right, more)], axis=1)
        pair.sort(axis=1)
        motif = graph.motif_id[pair]
        key = pair[:, 0] * size + pair[:, 1]
        place = np.minimum(np.searchsorted(taken, key), len(taken) - 1)
        good = (pair[:, 0] != pair[:, 1]) & (taken[place] != key)
        good &= (motif[:, 0] != motif[:, 1]) | (motif[:, 0] < 0)
        drawn = np.concatenate([drawn, key[good]])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return np.stack([drawn // size, drawn % size], axis=1)


def _check_room(graph: Composition, count: int, left: tuple[int, int], right: tuple[int, int]) -> None:
    """Refuses more extra edges than there surely are free pairs of nodes."""
    nodes = (left[1] - left[0], right[1] - right[0])
    pairs = nodes[0] * (nodes[0] - 1) // 2 if left == right else nodes[0] * nodes[1]
    sizes = np.bincount(graph.motif_id[graph.motif_id >= 0], minlength=1)
    free = pairs - len(graph.edges) - int((sizes * (sizes - 1) // 2).sum())
    if count > max(free, 0):
        raise ConfigError(
            f"{count} extra edges do not fit: the graph of {graph.num_nodes} nodes, {len(graph.edges)} edges "
            f"has room for {max(free, 0)}. Ask for less noise, fewer bridges, or a larger base."
        )
