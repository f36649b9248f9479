"""The strongest node set of every size: nodes are taken away one at a time, then added again.

On the way down the node goes whose loss weakens the target least. What only several nodes do together is seen there,
but at first many others blur what each of them does. So the way leads up again, from the smallest set that preserves
the prediction: the neighbour comes next that strengthens the target most. Of two sets of one size the stronger counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gflowexplainer.inference.random_parts import Neighbors, NodeSet

Measure = Callable[[Sequence[tuple[int, NodeSet]]], Iterable[tuple[float, bool]]]
"""Returns of each node set of an instance how strong the target is with only it, and whether it is preserved."""
EQUAL = 0.1
"""Log-odds that make no difference."""
_LITTLE_STRENGTH, LITTLE_PROBABILITY = 0.02, 0.05
_NOTHING = 1e-12


@dataclass(frozen=True)
class StrongSet:
    """A node set, how strong the target is with only it, and whether that preserves the prediction."""

    nodes: NodeSet
    strength: float
    held: bool


Sizes = dict[int, StrongSet]
"""Of one instance, the strongest set that was found of each size."""


def find_strongest_sets(
    measure: Measure,
    neighbors: Neighbors,
    starts: Mapping[int, NodeSet],
    value: Sequence[float],
    sizes: Mapping[int, int],
) -> dict[int, Sizes]:
    """Finds strong sets of many instances at once.

    Args:
        measure: Evaluates the model.
        neighbors: Of the instances.
        starts: The nodes of each instance to begin with.
        value: Probability of every node. Of nodes whose loss is about the same the least probable one goes.
        sizes: Sets are wanted up to twice this size of an instance, or twice the smallest one that holds if larger.
    """
    found: dict[int, Sizes] = {i: {} for i in starts}
    for i, (strength, held) in zip(starts, measure(list(starts.items())), strict=True):
        keep_strongest(found[i], StrongSet(starts[i], strength, held))
    now = dict(starts)
    while now := {i: nodes for i, nodes in now.items() if len(nodes) > 1}:
        smaller = {i: {node: nodes - {node} for node in sorted(nodes)} for i, nodes in now.items()}
        for i, choices in measure_choices(measure, smaller).items():
            node = min(choices, key=lambda node: (-round(choices[node].strength / EQUAL), value[node], node))
            now[i] = choices[node].nodes
            keep_strongest(found[i], choices[node])
    least = {i: min((n for n, one in known.items() if one.held), default=0) for i, known in found.items()}
    most = {i: 2 * max(size, sizes.get(i, 0)) for i, size in least.items() if size}
    now = {i: found[i][least[i]].nodes for i in most}
    while now:
        larger = {i: {n: nodes | {n} for n in sorted(neighbors.around(nodes) & starts[i])} for i, nodes in now.items()}
        # One more than is wanted says what comes after the last one.
        larger = {i: choices for i, choices in larger.items() if choices and len(now[i]) <= most[i]}
        now = {}
        for i, choices in measure_choices(measure, larger).items():
            one = choices[_strongest(choices, value)]
            now[i] = one.nodes
            keep_strongest(found[i], one)
    return found


def complete_sets(
    measure: Measure,
    neighbors: Neighbors,
    incomplete: Mapping[int, NodeSet],
    others: Mapping[int, NodeSet],
    value: Sequence[float],
) -> dict[int, list[StrongSet]]:
    """Adds nodes to sets that do not hold, each time the one that strengthens the target most, until they do.

    Args:
        measure: Evaluates the model.
        neighbors: Of the instances.
        incomplete: A set of each instance.
        others: Nodes of each instance that may join it beside its neighbours.
        value: Probability of every node. Of nodes that strengthen it about the same the most probable one joins.

    Returns:
        The sets on the way, smallest first. The last one holds, unless none does up to a bit more than twice the size.
    """
    found: dict[int, list[StrongSet]] = {i: [] for i in incomplete}
    now = dict(incomplete)
    while now:
        larger = {
            i: {n: nodes | {n} for n in sorted((neighbors.around(nodes) | others[i]) - nodes)}
            for i, nodes in now.items()
            if len(nodes) <= 2 * len(incomplete[i])
        }
        now = {}
        for i, choices in measure_choices(measure, {i: choices for i, choices in larger.items() if choices}).items():
            one = choices[_strongest(choices, value)]
            found[i].append(one)
            if not one.held:
                now[i] = one.nodes
    return found


def _strongest(choices: Mapping[int, StrongSet], value: Sequence[float]) -> int:
    """Returns the node that strengthens the target most; among about equals the most probable one."""
    return max(choices, key=lambda node: (round(choices[node].strength / EQUAL), value[node], -node))


def measure_choices(measure: Measure, asked: Mapping[int, Mapping[int, NodeSet]]) -> dict[int, dict[int, StrongSet]]:
    """Measures sets of many instances, each named by the node that it differs by."""
    flat = [(i, node, nodes) for i, choices in asked.items() for node, nodes in choices.items()]
    found: dict[int, dict[int, StrongSet]] = {i: {} for i in asked}
    answers = measure([(i, nodes) for i, _, nodes in flat]) if flat else []
    for (i, node, nodes), (strength, held) in zip(flat, answers, strict=True):
        found[i][node] = StrongSet(nodes, strength, held)
    return found


def keep_strongest(sizes: Sizes, one: StrongSet) -> None:
    """Keeps a set unless one of its size is known that is about as strong, in place."""
    known = sizes.get(len(one.nodes))
    if known is None or (one.held, one.strength) > (known.held, known.strength + EQUAL):
        sizes[len(one.nodes)] = one


def widest_gap(sizes: Sizes, allowed: Iterable[NodeSet], value: Mapping[int, float]) -> NodeSet:
    """Picks the set whose nodes stand out most from all others, the smallest among equals; empty if none is allowed.

    Two gaps count: how many times as probable the least probable node inside is as the most probable one outside, and
    how many times what the next node would add the last one adds. A model that is sure hardly tells nodes apart, though
    it looks at them; so the second gap counts by its root only.

    Args:
        sizes: The strongest sets of an instance.
        allowed: Sets that may be picked, of sizes that are known.
        value: Probability of each node of the instance.
    """
    order = sorted(sizes)
    strength = [sizes[size].strength for size in order]
    sure = max(*strength, EQUAL)
    # What a node adds between two sizes; a single one adds everything. The largest set has nothing to stand out from.
    added = [sure, *((b - a) / (m - n) for (n, a), (m, b) in pairwise(zip(order, strength, strict=True)))]
    added.append(added[-1])

    def stands_out(nodes: NodeSet) -> float:
        place = order.index(len(nodes))
        steps = _gap(added[place], added[place + 1], _LITTLE_STRENGTH * sure)
        return gap_around(nodes, value, LITTLE_PROBABILITY) * steps**0.5

    return max(sorted(allowed, key=len), key=stands_out, default=frozenset())


def gap_around(nodes: NodeSet, value: Mapping[int, float], little: float) -> float:
    """Returns the least worth of some nodes as a multiple of the most that any other node of their instance is worth.

    Args:
        nodes: Some nodes.
        value: What each node of the instance is worth.
        little: Share of the largest worth that makes no difference.
    """
    top = max(value.values())
    inside = min((value[node] for node in nodes), default=top)
    outside = max((value[node] for node in value.keys() - nodes), default=inside)
    return _gap(inside, outside, little * top)


def _gap(more: float, less: float, little: float) -> float:
    # Where nothing is worth anything, nothing stands out.
    little = max(little, _NOTHING)
    return (max(more, 0.0) + little) / (max(less, 0.0) + little)
