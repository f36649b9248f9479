"""Finds a motif inside a larger labelled graph.

What a graph cannot hold by its counts (of labels, of edges between them, of cycles) is not looked for, and the order in
which the nodes of a motif are placed is made once. Leaves that hang on the same node and look alike are placed in the
order of node ids, so that a star in a hub is not tried in every order. What is not found in :data:`MOST_STEPS`
placements counts as not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gflowexplainer.catalogue.canonical_form import CanonicalForm, canonical_form

MOST_STEPS = 5_000
"""Placements of a node that are tried for one motif in one graph."""


@dataclass(frozen=True)
class Counts:
    """Numbers that no subgraph has more of than its graph.

    Attributes:
        labels: Nodes of each label.
        edges: Edges of each kind: labels of both ends, ascending, and of the edge.
        cycles: Independent cycles: edges less nodes, and one for each connected component.
    """

    labels: Counter[str]
    edges: Counter[tuple[str, str, str]]
    cycles: int

    @classmethod
    def of(cls, labels: Sequence[str], neighbors: Sequence[dict[int, str]]) -> Counts:
        """Counts nodes, edges and cycles of a graph."""
        edges = Counter(
            (min(labels[u], labels[v]), max(labels[u], labels[v]), kind)
            for u, around in enumerate(neighbors)
            for v, kind in around.items()
            if u < v
        )
        components, seen = 0, set[int]()
        for node in range(len(labels)):
            components += node not in seen
            stack = [node]
            while stack:
                one = stack.pop()
                if one not in seen:
                    seen.add(one)
                    stack.extend(neighbors[one])
        return cls(Counter(labels), edges, edges.total() - len(labels) + components)

    def fit_into(self, other: Counts) -> bool:
        """Says whether none of the numbers is above that of another graph."""
        return self.cycles <= other.cycles and self.labels <= other.labels and self.edges <= other.edges


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """An undirected graph with labels.

    Attributes:
        labels: Label of each node.
        neighbors: Neighbours of each node, with the label of the edge to them.
    """

    labels: Sequence[str]
    neighbors: Sequence[dict[int, str]]

    @cached_property
    def counts(self) -> Counts:
        """How often each label and each kind of edge occurs, and how many cycles there are."""
        return Counts.of(self.labels, self.neighbors)

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
    pattern = _pattern(motif)
    if not pattern.counts.fit_into(graph.counts):
        return False
    search = _Search(graph, allowed)
    if at is not None:
        # Of slots that can change places, one will do.
        return any(search.finds(plan, at) for slot, plan in enumerate(pattern.plans) if slot not in pattern.before)
    # Any slot will do, as every match fills all of them.
    plan = pattern.plans[pattern.busiest]
    return any(search.finds(plan, node) for node in (sorted(allowed) if allowed else range(len(graph.labels))))


@dataclass(frozen=True)
class _Step:
    """How one slot of a motif is placed.

    Attributes:
        label: Label that the node has to have.
        degree: Neighbours that it needs.
        anchor: Earlier step on a neighbour of whose node it lies; ``-1`` for the first.
        joined: For every earlier step, the label of the edge to it, ``None`` where there is none.
        after: Earlier step whose node must have a smaller id, as both can change places; ``-1`` for none.
    """

    label: str
    degree: int
    anchor: int
    joined: tuple[str | None, ...]
    after: int


@dataclass(frozen=True)
class _Pattern:
    """What is known of a motif before any graph is looked at.

    Attributes:
        counts: Its labels, edges and cycles.
        plans: The steps that place it, beginning with each slot.
        before: Of slots that can change places, the one before.
        busiest: The slot with the most neighbours.
    """

    counts: Counts
    plans: tuple[tuple[_Step, ...], ...]
    before: dict[int, int]
    busiest: int


@lru_cache(maxsize=1024)
def _pattern(motif: CanonicalForm) -> _Pattern:
    """Plans how a motif is looked for."""
    around = motif.neighbors()
    alike: dict[tuple[str, tuple[tuple[int, str], ...]], int] = {}
    before: dict[int, int] = {}
    for slot, joined in enumerate(around):
        look = (motif.labels[slot], tuple(sorted(joined.items())))
        if look in alike:
            before[slot] = alike[look]
        alike[look] = slot
    slots = range(len(motif))
    plans = tuple(_plan(motif, around, before, first) for first in slots)
    return _Pattern(Counts.of(motif.labels, around), plans, before, max(slots, key=lambda i: len(around[i])))


def _plan(
    motif: CanonicalForm, around: Sequence[dict[int, str]], before: dict[int, int], first: int
) -> tuple[_Step, ...]:
    """Plans the steps that place a motif, beginning with the slot ``first``."""
    order = _connected_order(around, first)
    place = {slot: step for step, slot in enumerate(order)}
    steps = []
    for step, slot in enumerate(order):
        # Where a slot begins that could change places with another, its place is not that of any order.
        twin = before.get(slot, first)
        after = place[twin] if first not in (slot, twin) and place[twin] < step else -1
        earlier = [place[other] for other in around[slot] if place[other] < step]
        joined = tuple(around[slot].get(other) for other in order[:step])
        steps.append(_Step(motif.labels[slot], len(around[slot]), earlier[0] if earlier else -1, joined, after))
    return tuple(steps)


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
    """Looks for one motif in one graph, in at most :data:`MOST_STEPS` placements."""

    def __init__(self, graph: LabelledGraph, allowed: frozenset[int]) -> None:
        self.graph, self.allowed, self.steps = graph, allowed, 0

    def finds(self, plan: Sequence[_Step], node: int) -> bool:
        """Whether the motif lies there with its first slot on ``node``."""
        return self._place(plan, [], node)

    def _place(self, plan: Sequence[_Step], placed: list[int], node: int) -> bool:
        """Places the next slot on a node, and all that follow on others."""
        self.steps += 1
        if self.steps > MOST_STEPS or not self._fits(plan[len(placed)], placed, node):
            return False
        placed.append(node)
        if len(placed) == len(plan):
            return True
        step = plan[len(placed)]
        least = placed[step.after] if step.after >= 0 else -1
        for other in self.graph.neighbors[placed[step.anchor]]:
            if other > least and other not in placed and self._place(plan, placed, other):
                return True
        placed.pop()
        return False

    def _fits(self, step: _Step, placed: Sequence[int], node: int) -> bool:
        """Says whether a node agrees with the step: label, edges, and no edge where there is none."""
        if self.graph.labels[node] != step.label or (self.allowed and node not in self.allowed):
            return False
        joined = self.graph.neighbors[node]
        if len(joined) < step.degree:
            return False
        return all(label == joined.get(other) for label, other in zip(step.joined, placed, strict=True))
