"""Finds a motif inside a larger labelled graph.

Leaves that hang on the same node and look alike are placed in the order of node ids, so that a star in a hub is not
tried in every order. What is not found in :data:`MOST_STEPS` placements counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gflowexplainer.catalogue.canonical_form import CanonicalForm, canonical_form

MOST_STEPS = 5_000
"""Placements of a node that are tried for one motif in one graph."""


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """An undirected graph with labels.

    Attributes:
        labels: Label of each node.
        neighbors: Neighbours of each node, with the label of the edge to them.
    """

    labels: Sequence[str]
    neighbors: Sequence[dict[int, str]]

    def form(self, nodes: Iterable[int]) -> CanonicalForm:
        """Returns the canonical form of the subgraph that some nodes induce."""
        order = sorted(nodes)
        place = {node: i for i, node in enumerate(order)}
        edges = {
            (place[u], place[v]): label for u in order for v, label in self.neighbors[u].items() if v in place and u < v
        }
        return canonical_form([self.labels[node] for node in order], edges)


def holds(graph: LabelledGraph, motif: CanonicalForm, *, at: int | None = None, among: Iterable[int] = ()) -> bool:
    """Says whether a motif lies in a graph as an induced subgraph with its labels; motifs are connected.

    Args:
        graph: The graph.
        motif: The motif.
        at: A node that it has to contain.
        among: Nodes that it has to lie in; all if there are none.
    """
    allowed = frozenset(among)
    around = motif.neighbors()
    begins: Iterable[tuple[int, int]]
    search = _Search(graph, motif, around, allowed)
    if at is not None:
        # Of slots that can change places, one will do.
        begins = [(slot, at) for slot in range(len(motif)) if slot not in search.before]
    else:
        # The rarest way to begin: any slot will do, as every match fills all of them.
        nodes = sorted(allowed) if allowed else range(len(graph.labels))
        slot = max(range(len(motif)), key=lambda i: len(around[i]))
        begins = [(slot, node) for node in nodes]
    return any(search.finds(slot, node) for slot, node in begins)


def _connected_order(around: Sequence[dict[int, str]], first: int) -> list[int]:
    """Lists all slots from ``first`` on, each joined to an earlier one; those that have the fewest places go first."""
    order, place = [first], {first: 0}
    while len(order) < len(around):
        beside = {other for slot in order for other in around[slot] if other not in place}
        # The more neighbours it has, and the more of them are placed, the fewer places there are for it. Leaves come
        # last, those of the newest slot before others.
        chosen = max(
            beside,
            key=lambda slot: (
                sum(other in place for other in around[slot]),
                len(around[slot]),
                max(place.get(other, -1) for other in around[slot]),
                -slot,
            ),
        )
        place[chosen] = len(order)
        order.append(chosen)
    return order


class _Search:
    """Looks for one motif in one graph."""

    def __init__(
        self,
        graph: LabelledGraph,
        motif: CanonicalForm,
        around: Sequence[dict[int, str]],
        allowed: frozenset[int],
    ) -> None:
        self.graph, self.motif, self.around, self.allowed = graph, motif, around, allowed
        self.steps = 0
        alike: dict[tuple[str, tuple[tuple[int, str], ...]], int] = {}
        self.before: dict[int, int] = {}
        """Of slots that can change places, the one before."""
        for slot, joined in enumerate(around):
            look = (motif.labels[slot], tuple(sorted(joined.items())))
            if look in alike:
                self.before[slot] = alike[look]
            alike[look] = slot

    def finds(self, slot: int, node: int) -> bool:
        """Whether the motif lies there with ``slot`` on ``node``."""
        order = _connected_order(self.around, slot)
        # Where a slot begins that could change places with another, its place is not that of any order.
        twins = {o: b for o, b in self.before.items() if slot not in (o, b)}
        return self._extend(order, {slot: node}, twins)

    def _extend(self, order: Sequence[int], placed: dict[int, int], twins: dict[int, int]) -> bool:
        """Places the slots in ``order`` on nodes, given those that are ``placed`` already."""
        self.steps += 1
        if self.steps > MOST_STEPS or not _fits(
            self.graph, self.motif, self.around, order[len(placed) - 1], placed, self.allowed
        ):
            return False
        if len(placed) == len(order):
            return True
        slot = order[len(placed)]
        anchor = next(placed[other] for other in self.around[slot] if other in placed)
        taken = set(placed.values())
        twin = twins.get(slot)
        least = placed[twin] if twin is not None and twin in placed else -1
        return any(
            self._extend(order, {**placed, slot: node}, twins)
            for node in self.graph.neighbors[anchor]
            if node not in taken and node > least
        )


def _fits(
    graph: LabelledGraph,
    motif: CanonicalForm,
    around: Sequence[dict[int, str]],
    slot: int,
    placed: dict[int, int],
    allowed: frozenset[int],
) -> bool:
    """Says whether the newest slot agrees with all others: label, edges, and no edge where there is none."""
    node = placed[slot]
    if graph.labels[node] != motif.labels[slot] or (allowed and node not in allowed):
        return False
    joined = graph.neighbors[node]
    if len(joined) < len(around[slot]):
        return False
    return all(around[slot].get(o) == joined.get(other) for o, other in placed.items() if o != slot)
