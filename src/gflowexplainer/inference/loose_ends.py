"""Takes away what only hangs on a node set: by one edge or none, far less probable than it, and not missed.

A node beside a needed place looks a little like it, since masks of graphs count neighbours too. Nodes that close a ring
or join others are left alone, also those that a sure model does not miss: they belong to what it looks at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from gflowexplainer.inference.random_parts import Neighbors, NodeSet
from gflowexplainer.inference.strongest_sets import Measure, StrongSet, measure_choices

MISSED = 0.3
"""Share of what the usual node of a set does that one does which hangs on it by one edge and belongs to it."""
LIKELY = 2 / 3
"""Share of the probability of the usual node of a set from which on one belongs to it, missed or not."""
_FEWEST = 3


def without_loose_ends(
    measure: Measure, neighbors: Neighbors, sets: Mapping[int, NodeSet], value: Sequence[float]
) -> dict[int, NodeSet]:
    """Takes nodes away one by one, the least missed first, as long as the prediction is preserved.

    Args:
        measure: Evaluates the model.
        neighbors: Of the instances.
        sets: Nodes of each instance; at least two are left.
        value: Probability of every node.

    Returns:
        What is left of the sets.
    """
    left, now = dict(sets), dict(sets)
    while True:
        ends = {i: _ends(neighbors, nodes, value) for i, nodes in now.items() if len(nodes) >= _FEWEST}
        now = {i: now[i] for i, some in ends.items() if some}
        if not now:
            return left
        strength = {i: found for i, (found, _) in zip(now, measure(list(now.items())), strict=True)}
        smaller = {i: {node: nodes - {node} for node in sorted(nodes)} for i, nodes in now.items()}
        gone = {
            i: _least_missed(strength[i], choices, ends[i]) for i, choices in measure_choices(measure, smaller).items()
        }
        now = {i: one.nodes for i, one in gone.items() if one is not None}
        left |= now


def _ends(neighbors: Neighbors, nodes: NodeSet, value: Sequence[float]) -> list[int]:
    """Returns the nodes of a set with at most one neighbour in it that are far less probable than the usual one."""
    likely = LIKELY * median(value[node] for node in nodes)
    unlikely = [node for node in sorted(nodes) if value[node] < likely]
    return [node for node in unlikely if sum(other in nodes for other in neighbors.of(node)) <= 1]


def _least_missed(strength: float, choices: Mapping[int, StrongSet], ends: Sequence[int]) -> StrongSet | None:
    """Returns the set without the end whose loss weakens the target least, if it is not missed."""
    usual = median(strength - one.strength for one in choices.values())
    one = choices[max(ends, key=lambda node: choices[node].strength)]
    return one if one.held and strength - one.strength < MISSED * usual else None
