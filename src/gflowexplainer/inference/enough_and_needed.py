"""Grows, around nodes, the connected set that is enough for a class and needed for it: both, measured on the model.

Where a distribution follows what single nodes of the instance itself do to the class, it samples small subgraphs that
have most of it, but what several nodes do together nobody has asked. So sets are asked: from the explained node on, the
neighbour joins next with which most of the probability of the class is there with only the set, and least without it.
Of all sets on the way the one is taken in which these two are furthest apart, as long as every node does something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gflowexplainer.inference.preservation import NEARLY, predict_sets
from gflowexplainer.inference.random_parts import LARGEST, Neighbors, NodeSet, roots_of
from gflowexplainer.rewards.base import Reward

_LARGER = 2
"""How many times as large as the first subgraph what is grown may be."""


def grow_enough_and_needed(
    reward: Reward, neighbors: Neighbors, firsts: Sequence[NodeSet], value: Sequence[float]
) -> list[NodeSet]:
    """Returns the nodes of every instance that do most to its class, or its first subgraph where nothing does more.

    Args:
        reward: Evaluates the model on subgraphs of the instances, which are nodes of some class.
        neighbors: Of the instances.
        firsts: The first subgraph of each instance.
        value: Probability of every node. The most probable neighbours of a set are tried, of equals that one joins.
    """
    found = _best(reward, {i: [first] for i, first in enumerate(firsts)})
    now = {i: frozenset(roots_of(reward.instances, i)) for i in found}
    while now := {i: nodes for i, nodes in now.items() if len(nodes) < min(_LARGER * len(firsts[i]), LARGEST)}:
        larger = _best(reward, {i: _joined(neighbors, nodes, value) for i, nodes in now.items()})
        found |= {i: (nodes, worth) for i, (nodes, worth) in larger.items() if worth > found[i][1]}
        now = {i: nodes for i, (nodes, _) in larger.items()}
    return [found[i][0] for i in range(len(firsts))]


def _joined(neighbors: Neighbors, nodes: NodeSet, value: Sequence[float]) -> list[NodeSet]:
    """Returns the nodes with each of their most probable neighbours, the most probable first."""
    around = sorted(neighbors.around(nodes), key=lambda node: (-value[node], node))
    return [nodes | {node} for node in around[:LARGEST]]


def _best(reward: Reward, sets: Mapping[int, Sequence[NodeSet]]) -> dict[int, tuple[NodeSet, float]]:
    """Returns of each instance that has any the set that is worth most, the first among equals, and what it is worth.

    That is how much more probable the class is with only the set than without it, less what its nodes cost.
    """
    asked = [(i, nodes) for i, choices in sets.items() for nodes in choices]
    if not asked:
        return {}
    label = reward.target.label
    assert label is not None
    only, without = (predict_sets(reward, asked, without=way).double() for way in (False, True))
    done = (only - without).gather(1, label[[i for i, _ in asked], None])[:, 0].tolist()
    best: dict[int, tuple[NodeSet, float]] = {}
    for (i, nodes), most in zip(asked, done, strict=True):
        worth = most - NEARLY * len(nodes)
        if i not in best or worth > best[i][1]:
            best[i] = nodes, worth
    return best
