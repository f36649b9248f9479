"""Coloured motifs on coloured trees: the material of the logic tasks.

Every graph is a random tree, the base, to which pieces are attached by single edges: motifs that count, and decoys
that do not. A decoy has the shape of a motif with its colours in another order, or its colours on another shape. All
colours are equally frequent in the base, so no colour alone tells anything. Motifs and decoys have no bridge, and
an attached piece hangs on one, so a motif can lie in a graph only where it was planted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import networkx
import numpy as np
import torch
from networkx.algorithms.isomorphism import GraphMatcher, categorical_node_match
from torch_geometric.data import Data

from gflowbench.datasets.motifs import Motif, cycle, house
from gflowbench.suites.halves import half_of

COLOURS = 5
_MAX_DEGREE = 4


@dataclass(frozen=True, eq=False)
class Palette:
    """What the logic tasks of one half plant; the labels of these motifs are colours.

    Attributes:
        first: The motif A.
        second: The motif B.
        decoys: Pieces that hold neither of the two.
        shapes: Shapes that are told apart whatever their colours, one for each class of a task.
    """

    first: Motif
    second: Motif
    decoys: tuple[Motif, ...]
    shapes: tuple[Motif, ...]


def wheel(size: int) -> Motif:
    """A hub, node ``size - 1``, joined to every node of a ring."""
    rim = [(i, (i + 1) % (size - 1)) for i in range(size - 1)]
    return coloured(Motif(_edges(rim + [(i, size - 1) for i in range(size - 1)]), np.zeros(size, dtype=np.int64)))


def lattice(rows: int, columns: int) -> Motif:
    """A grid of ``rows`` times ``columns`` nodes."""
    graph = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(rows, columns))
    return coloured(Motif(_edges(graph.edges), np.zeros(rows * columns, dtype=np.int64)))


def coloured(shape: Motif, colours: Sequence[int] | None = None) -> Motif:
    """Returns the shape with the given colours, one a node; all 0 if not given."""
    chosen = np.zeros(shape.size, dtype=np.int64) if colours is None else np.array(colours, dtype=np.int64)
    return Motif(shape.edges, chosen)


@lru_cache
def palette_of(seed: int) -> Palette:
    """Returns the motifs of the half that ``seed`` belongs to."""
    if half_of(seed) == "development":
        first, second = coloured(house(), (0, 1, 0, 1, 2)), coloured(wheel(5), (2, 3, 2, 3, 4))
        shapes = (house(), cycle(6), lattice(3, 3), wheel(5))
        return Palette(first, second, _decoys(first, second, cycle(5)), shapes)
    first, second = coloured(lattice(2, 3), (3, 4, 3, 0, 1, 0)), coloured(wheel(6), (1, 2, 1, 2, 0, 4))
    shapes = (cycle(5), lattice(2, 4), wheel(4), wheel(6))
    return Palette(first, second, _decoys(first, second, cycle(6)), shapes)


def holds(piece: Motif, motif: Motif) -> bool:
    """Says whether ``motif`` lies in ``piece``, with its colours."""
    same = categorical_node_match("colour", None)
    return GraphMatcher(_networkx(piece), _networkx(motif), node_match=same).subgraph_is_monomorphic()


def _decoys(first: Motif, second: Motif, ring: Motif, each: int = 2) -> tuple[Motif, ...]:
    """Collects pieces with the shapes and colours of the motifs, none of which holds one."""
    chosen = []
    mixed = ((first, first), (second, second), (ring, first), (first, second))
    for shape, colours in ((shape, source.labels) for shape, source in mixed):
        fits = np.resize(colours, shape.size)
        found = [coloured(shape, order) for order in sorted(set(permutations(fits.tolist())))]
        found = [piece for piece in found if not holds(piece, first) and not holds(piece, second)]
        chosen += [found[i] for i in np.linspace(0, len(found) - 1, each).astype(int)]
    return tuple(chosen)


class Assembly:
    """A graph in the making: a coloured random tree and what is attached to it.

    Args:
        num_base_nodes: Nodes of the tree, at least 1.
        rng: Source of everything random.
    """

    def __init__(self, num_base_nodes: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.colours: list[int] = rng.integers(0, COLOURS, num_base_nodes).tolist()
        self.edges: list[tuple[int, int]] = []
        self.num_base_nodes = num_base_nodes
        degree = np.zeros(num_base_nodes, dtype=np.int64)
        for node in range(1, num_base_nodes):
            parent = int(rng.choice(np.flatnonzero(degree[:node] < _MAX_DEGREE)))
            self.edges.append((parent, node))
            degree[[parent, node]] += 1

    def attach(self, piece: Motif, anchor: int | None = None) -> tuple[int, ...]:
        """Joins a random node of ``piece`` to ``anchor``, or to a random base node, and returns its node ids."""
        first = len(self.colours)
        anchor = int(self.rng.integers(self.num_base_nodes)) if anchor is None else anchor
        self.colours += piece.labels.tolist()
        self.edges += [(first + a, first + b) for a, b in piece.edges.tolist()]
        self.edges.append((anchor, first + int(self.rng.integers(piece.size))))
        return tuple(range(first, first + piece.size))

    def distances(self) -> np.ndarray:
        """Returns the steps between any two nodes, shape ``[N, N]``."""
        graph = networkx.Graph(self.edges)
        graph.add_nodes_from(range(len(self.colours)))
        return np.asarray(networkx.floyd_warshall_numpy(graph, nodelist=range(len(self.colours))))

    def to_data(self, label: float, *, value: bool = False) -> tuple[Data, np.ndarray]:
        """Returns the graph with its nodes in random order.

        Args:
            label: The class, or with ``value`` the value of the graph.
            value: Whether it is a value.

        Returns:
            The graph with one-hot colours ``x`` ``[N, COLOURS]``, and the new id of each node, shape ``[N]``.
        """
        new = self.rng.permutation(len(self.colours))
        colours = torch.empty(len(new), dtype=torch.long)
        colours[torch.from_numpy(new)] = torch.tensor(self.colours)
        pairs = torch.from_numpy(new[np.array(self.edges, dtype=np.int64).reshape(-1, 2)].T.copy())
        both = torch.cat([pairs, pairs.flip(0)], dim=1)
        y = torch.tensor([label], dtype=torch.float if value else torch.long)
        x = torch.nn.functional.one_hot(colours, COLOURS).float()
        return Data(x=x, edge_index=both, y=y), new


def renamed(nodes: Iterable[int], new: np.ndarray) -> tuple[int, ...]:
    """Returns the new ids of ``nodes``, ascending."""
    return tuple(sorted(new[list(nodes)].tolist()))


def _networkx(motif: Motif) -> networkx.Graph:
    graph = networkx.Graph(motif.edges.tolist())
    networkx.set_node_attributes(graph, dict(enumerate(motif.labels.tolist())), "colour")
    return graph


def _edges(pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.sort(np.array(list(pairs), dtype=np.int64), axis=1)
