"""Adds to the nodes that hold the class of a graph the places elsewhere without which it is lost.

With only one of two groups that a class rests on, a model may say the same class: it never saw so small a graph. But
without any one node of the other group it does not, and whoever asks why has to be shown both. A single such node may
be an accident; it counts where masks show it too. What lies beside the chosen nodes was tried when these were chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from gflowexplainer.inference.preservation import NEARLY, measure_preservation
from gflowexplainer.inference.random_parts import LARGEST, Neighbors, NodeSet
from gflowexplainer.rewards.base import Reward

LOST = 0.5
"""Share of the probability of a class below which it is lost."""
_SEEN = 0.25
"""Share of the probability of the usual chosen node that a single node needs."""


def with_needed_places(
    reward: Reward, neighbors: Neighbors, chosen: Mapping[int, NodeSet], value: Sequence[float]
) -> dict[int, NodeSet]:
    """Adds connected sets of needed nodes to what was chosen, where the class is held with them as well as before.

    Args:
        reward: Evaluates the model on subgraphs of the instances, which are graphs of some class.
        neighbors: Of the instances.
        chosen: Nodes of each instance.
        value: Probability of every node; the most probable ones are evaluated.
    """
    more = {}
    for i, needed in _needed_elsewhere(reward, neighbors, chosen, value).items():
        seen = _SEEN * median(value[node] for node in chosen[i])
        places = [p for p in neighbors.components(i, needed) if len(p) > 1 or value[min(p)] >= seen]
        added = frozenset().union(*places)
        if added and len(chosen[i]) + len(added) <= LARGEST:
            more[i] = chosen[i] | added
    if not more:
        return dict(chosen)
    sets = [*more.items(), *((i, chosen[i]) for i in more)]
    together, before = measure_preservation(reward, sets).preserved.split(len(more))
    fine = together >= before - NEARLY
    return dict(chosen) | {i: nodes for (i, nodes), so in zip(more.items(), fine.tolist(), strict=True) if so}


def _needed_elsewhere(
    reward: Reward, neighbors: Neighbors, chosen: Mapping[int, NodeSet], value: Sequence[float]
) -> dict[int, NodeSet]:
    """Finds the nodes, neither chosen nor beside what is chosen, without any one of which the class is lost."""
    ptr, asked = reward.instances.ptr.tolist(), []
    for i, nodes in chosen.items():
        beside = nodes | neighbors.around(nodes)
        rest = sorted(set(range(ptr[i], ptr[i + 1])) - beside, key=lambda node: (-value[node], node))
        asked += [(i, frozenset([node])) for node in rest[:LARGEST]]
    needed: dict[int, NodeSet] = {}
    left = measure_preservation(reward, asked, without=True).preserved.tolist() if asked else []
    for (i, node), share in zip(asked, left, strict=True):
        if share < LOST:
            needed[i] = needed.get(i, frozenset()) | node
    return needed
