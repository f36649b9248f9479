"""Finds a motif inside a larger labelled graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gflowexplainer.catalogue.canonical_form import CanonicalForm, canonical_form


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
    if at is not None:
        begins = [(slot, at) for slot in range(len(motif))]
    else:
        # The rarest way to begin: any slot will do, as every match fills all of them.
        nodes = sorted(allowed) if allowed else range(len(graph.labels))
        slot = max(range(len(motif)), key=lambda i: len(around[i]))
        begins = [(slot, node) for node in nodes]
    for slot, node in begins:
        order = _connected_order(around, slot)
        if next(_matches(graph, motif, around, order, {slot: node}, allowed), None) is not None:
            return True
    return False


def _connected_order(around: Sequence[dict[int, str]], first: int) -> list[int]:
    """Lists all slots from ``first`` on, each joined to an earlier one."""
    order, seen = [first], {first}
    for slot in order:
        for other in sorted(around[slot]):
            if other not in seen:
                seen.add(other)
                order.append(other)
    return order


def _matches(
    graph: LabelledGraph,
    motif: CanonicalForm,
    around: Sequence[dict[int, str]],
    order: Sequence[int],
    placed: dict[int, int],
    allowed: frozenset[int],
) -> Iterator[dict[int, int]]:
    """Yields ways to place the slots of a motif in ``order`` on nodes, given those that are ``placed`` already."""
    newest = order[len(placed) - 1]
    if not _fits(graph, motif, around, newest, placed, allowed):
        return
    if len(placed) == len(order):
        yield placed
        return
    slot = order[len(placed)]
    anchor = next(placed[other] for other in around[slot] if other in placed)
    taken = set(placed.values())
    for node in graph.neighbors[anchor]:
        if node not in taken:
            yield from _matches(graph, motif, around, order, {**placed, slot: node}, allowed)


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
