"""The canonical form of a small labelled graph: equal for two graphs exactly if they are isomorphic.

Colours are refined by those of the neighbours; where that leaves nodes alike, each of them is told apart in turn, and
the smallest description wins. Symmetries that are met on the way spare the turns that they make superfluous.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

Description = tuple[tuple[str, ...], tuple[tuple[int, int, str], ...]]
"""Labels of the nodes in canonical order, and edges between their places with labels, ascending."""


@dataclass(frozen=True)
class CanonicalForm:
    """A labelled graph whose nodes stand in canonical order.

    Attributes:
        labels: Label of each node.
        edges: Edges ``(i, j, label)`` with ``i < j``, ascending.
    """

    labels: tuple[str, ...]
    edges: tuple[tuple[int, int, str], ...]

    def __len__(self) -> int:
        return len(self.labels)

    def neighbors(self) -> list[dict[int, str]]:
        """Returns the neighbours of each node, with the label of the edge to them."""
        found: list[dict[int, str]] = [{} for _ in self.labels]
        for i, j, label in self.edges:
            found[i][j] = found[j][i] = label
        return found


def canonical_form(labels: Sequence[str], edges: Mapping[tuple[int, int], str]) -> CanonicalForm:
    """Returns a graph in canonical form.

    Args:
        labels: Label of each of the ``n`` nodes.
        edges: Labels of undirected edges by pairs of nodes; self loops do not count.
    """
    neighbors: list[dict[int, str]] = [{} for _ in labels]
    for (u, v), label in edges.items():
        if u != v:
            neighbors[u][v] = neighbors[v][u] = label
    search = _Search(labels, neighbors)
    search.visit(_refine(_ranks(list(labels)), neighbors), ())
    assert search.best is not None
    return CanonicalForm(*search.best)


class _Search:
    """Walks through the ways to tell alike nodes apart and keeps the smallest description."""

    def __init__(self, labels: Sequence[str], neighbors: Sequence[dict[int, str]]) -> None:
        self.labels, self.neighbors = labels, neighbors
        self.best: Description | None = None
        self.order: list[int] = []
        self.symmetries: list[list[int]] = []

    def visit(self, colours: list[int], fixed: tuple[int, ...]) -> None:
        """Looks at every description below colours ``[n]`` that were reached by telling ``fixed`` apart."""
        cells: dict[int, list[int]] = {}
        for node, colour in enumerate(colours):
            cells.setdefault(colour, []).append(node)
        alike = [cell for _, cell in sorted(cells.items()) if len(cell) > 1]
        if not alike:
            self._leaf([cells[colour][0] for colour in sorted(cells)])
            return
        done: list[int] = []
        for node in alike[0]:
            if not self._spared(node, done, fixed):
                apart = [2 * colour for colour in colours]
                apart[node] -= 1
                self.visit(_refine(_ranks(apart), self.neighbors), (*fixed, node))
                done.append(node)

    def _leaf(self, order: list[int]) -> None:
        place = {node: i for i, node in enumerate(order)}
        edges = sorted(
            (place[u], place[v], label)
            for u, around in enumerate(self.neighbors)
            for v, label in around.items()
            if place[u] < place[v]
        )
        found = tuple(self.labels[node] for node in order), tuple(edges)
        if self.best is None or found < self.best:
            self.best, self.order = found, order
        elif found == self.best:
            symmetry = list(range(len(order)))
            for before, after in zip(self.order, order, strict=True):
                symmetry[before] = after
            self.symmetries.append(symmetry)

    def _spared(self, node: int, done: list[int], fixed: tuple[int, ...]) -> bool:
        """Returns whether a symmetry that keeps ``fixed`` in place leads from a node that is done to this one."""
        if any(self._twins(node, other) for other in done):
            return True
        keeping = [s for s in self.symmetries if all(s[f] == f for f in fixed)]
        reached, stack = set(done), list(done)
        while stack and keeping:
            one = stack.pop()
            for symmetry in keeping:
                if symmetry[one] not in reached:
                    reached.add(symmetry[one])
                    stack.append(symmetry[one])
        return node in reached

    def _twins(self, u: int, v: int) -> bool:
        """Returns whether two nodes of one colour have the same neighbours, so that they can change places."""
        one = {w: label for w, label in self.neighbors[u].items() if w != v}
        other = {w: label for w, label in self.neighbors[v].items() if w != u}
        return self.labels[u] == self.labels[v] and one == other


def _refine(colours: list[int], neighbors: Sequence[dict[int, str]]) -> list[int]:
    """Refines colours by the colours around them until nothing changes."""
    while True:
        seen = [
            (colour, tuple(sorted((label, colours[v]) for v, label in neighbors[u].items())))
            for u, colour in enumerate(colours)
        ]
        finer = _ranks(seen)
        if max(finer) == max(colours):
            return finer
        colours = finer


def _ranks(values: Sequence[Hashable]) -> list[int]:
    """Numbers values by their order."""
    place = {value: rank for rank, value in enumerate(sorted(set(values)))}  # type: ignore[type-var]
    return [place[value] for value in values]
