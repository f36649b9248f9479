"""Finds a motif inside a larger labelled graph, as an induced subgraph, by placing one node after the other.

A graph that has fewer labels, edges of a kind or cycles than the motif is not searched. Leaves that hang on the same
node and look alike are placed in the order of node ids, so that a star in a hub is not tried in every order. A motif
that is not found in :data:`MOST_STEPS` placements counts as not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

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

    @cached_property
    def counts(self) -> Counter[tuple[str, ...]]:
        """How often there is each label, and each kind of edge: labels of both ends, ascending, and of the edge."""
        edges = (
            (*sorted((self.labels[u], self.labels[v])), kind)
            for u, around in enumerate(self.neighbors)
            for v, kind in around.items()
            if u < v
        )
        return Counter([*((label,) for label in self.labels), *edges])

    @cached_property
    def cycles(self) -> int:
        """Number of independent cycles: edges less nodes, and one for each connected component."""
        components, seen = 0, set[int]()
        for node in range(len(self.labels)):
            components += node not in seen
            stack = [node]
            while stack:
                one = stack.pop()
                if one not in seen:
                    seen.add(one)
                    stack.extend(self.neighbors[one])
        return sum(map(len, self.neighbors)) // 2 - len(self.labels) + components

    def form(self, nodes: Iterable[int]) -> CanonicalForm:
        """Returns the canonical form of the subgraph that some nodes induce."""
        order = sorted(nodes)
        place = {node: i for i, node in enumerate(order)}
        edges = {
            (place[u], place[v]): label for u in order for v, label in self.neighbors[u].items() if v in place and u < v
        }
        return canonical_form([self.labels[node] for node in order], edges)


def holds(graph: LabelledGraph, motif: CanonicalForm, *, at: int | None = None, among: Iterable[int] = ()) -> bool:
    """Returns whether a connected motif lies in a graph as an induced subgraph with its labels.

    Args:
        graph: The graph.
        motif: The motif.
        at: A node that it has to contain.
        among: Nodes that it has to lie in; all if there are none.
    """
    plans, small = _plans(motif)
    if small.cycles > graph.cycles or not small.counts <= graph.counts:
        return False
    allowed, left = frozenset(among), [MOST_STEPS]
    if at is not None:
        return any(_place(graph, allowed, plan, [], at, left) for plan in plans)
    # Any slot will do to begin with, as every match fills all of them: the one with the most neighbours.
    busiest = max(plans, key=lambda plan: plan[0].degree)
    starts = sorted(allowed) if allowed else range(len(graph.labels))
    return any(_place(graph, allowed, busiest, [], node, left) for node in starts)


@dataclass(frozen=True)
class _Step:
    """How one node of a motif is placed.

    Attributes:
        label: Label that the node has to have.
        degree: Neighbours that it needs.
        joined: For every earlier step, the label of the edge to it, ``None`` where there is none.
        after: Earlier step whose node must have a smaller id, as both can change places; ``-1`` for none.
    """

    label: str
    degree: int
    joined: tuple[str | None, ...]
    after: int


@lru_cache(maxsize=1024)
def _plans(motif: CanonicalForm) -> tuple[tuple[tuple[_Step, ...], ...], LabelledGraph]:
    """Returns the steps that place a motif, one plan for each node that comes first; of alike ones, for one."""
    around = motif.neighbors()
    alike: dict[tuple[str, tuple[tuple[int, str], ...]], int] = {}
    before: dict[int, int] = {}
    for slot, joined in enumerate(around):
        look = (motif.labels[slot], tuple(sorted(joined.items())))
        if look in alike:
            before[slot] = alike[look]
        alike[look] = slot
    plans = []
    for first in range(len(motif)):
        if first in before:
            continue
        order = _connected_order(around, first)
        place = {slot: step for step, slot in enumerate(order)}
        steps = []
        for step, slot in enumerate(order):
            # The first place is fixed, so that it does not count in the order of twins.
            twin = before.get(slot, first)
            after = place[twin] if first not in (slot, twin) and place[twin] < step else -1
            joined_to = tuple(around[slot].get(other) for other in order[:step])
            steps.append(_Step(motif.labels[slot], len(around[slot]), joined_to, after))
        plans.append(tuple(steps))
    return tuple(plans), LabelledGraph(motif.labels, around)


def _connected_order(around: Sequence[dict[int, str]], first: int) -> list[int]:
    """Returns all slots from ``first`` on, each joined to an earlier one; those with the fewest places go first."""
    order = [first]
    while len(order) < len(around):
        beside = sorted({other for slot in order for other in around[slot]} - {*order})
        placed = {slot: step for step, slot in enumerate(order)}

        def fewest(slot: int, placed: dict[int, int] = placed) -> tuple[int, int, int]:
            inside = [placed[other] for other in around[slot] if other in placed]
            return len(inside), len(around[slot]), max(inside)

        order.append(max(beside, key=fewest))
    return order


def _place(
    graph: LabelledGraph, allowed: frozenset[int], plan: Sequence[_Step], placed: list[int], node: int, left: list[int]
) -> bool:
    """Places the next step on a node, and all that follow on others."""
    left[0] -= 1
    step, around = plan[len(placed)], graph.neighbors[node]
    fits = graph.labels[node] == step.label and len(around) >= step.degree and (not allowed or node in allowed)
    if left[0] < 0 or not fits or any(one != around.get(there) for one, there in zip(step.joined, placed, strict=True)):
        return False
    placed.append(node)
    if len(placed) == len(plan):
        return True
    following = plan[len(placed)]
    anchor = next(place for place, one in enumerate(following.joined) if one is not None)
    least = placed[following.after] if following.after >= 0 else -1
    for other in graph.neighbors[placed[anchor]]:
        if other > least and other not in placed and _place(graph, allowed, plan, placed, other, left):
            return True
    placed.pop()
    return False
