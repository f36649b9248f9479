"""Takes away what only hangs on a ring of a node set: by one edge, far less probable than the set, and not missed.

A node beside a needed place looks a little like it, since masks of graphs count neighbours too. Nodes that close a ring
or join others are left alone, also those that a sure model does not miss: they belong to what it looks at. And where
there is no ring, every outermost node hangs on by one edge, which says nothing.
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

    def ends_of(i: int, nodes: NodeSet) -> list[int]:
        return _ends(neighbors, i, nodes, value) if len(nodes) >= _FEWEST else []

    left, asked = dict(sets), [(i, nodes) for i, nodes in sets.items() if ends_of(i, nodes)]
    answers = measure(asked) if asked else []
    now = {i: StrongSet(nodes, *answer) for (i, nodes), answer in zip(asked, answers, strict=True)}
    while now:
        smaller = {i: {node: one.nodes - {node} for node in sorted(one.nodes)} for i, one in now.items()}
        fewer = {
            i: _least_missed(now[i].strength, choices, ends_of(i, now[i].nodes))
            for i, choices in measure_choices(measure, smaller).items()
        }
        found = {i: one for i, one in fewer.items() if one is not None}
        left |= {i: one.nodes for i, one in found.items()}
        now = {i: one for i, one in found.items() if ends_of(i, one.nodes)}
    return left


def _ends(neighbors: Neighbors, instance: int, nodes: NodeSet, value: Sequence[float]) -> list[int]:
    """Returns the nodes that hang on rings of a set by one edge and are far less probable than its usual node."""
    likely = LIKELY * median(value[node] for node in nodes)
    found = []
    for part in neighbors.components(instance, nodes):
        within = {node: sum(other in part for other in neighbors.of(node)) for node in sorted(part)}
        # A connected set without a ring has one edge less than nodes.
        if sum(within.values()) >= 2 * len(part):
            found += [node for node, edges in within.items() if edges == 1 and value[node] < likely]
    return found


def _least_missed(strength: float, choices: Mapping[int, StrongSet], ends: Sequence[int]) -> StrongSet | None:
    """Returns the set without the end whose loss weakens the target least, if it is not missed."""
    usual = median(strength - one.strength for one in choices.values())
    one = choices[max(ends, key=lambda node: choices[node].strength)]
    return one if one.held and strength - one.strength < MISSED * usual else None
