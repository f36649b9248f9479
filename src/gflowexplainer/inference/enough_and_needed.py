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
        value: Probability of every node. The most probable neighbours of a set are tried; of equals one of them joins.
    """
    found = dict(enumerate(firsts))
    most = {i: done - NEARLY * len(firsts[i]) for i, done in enumerate(_done(reward, list(found.items())))}
    now = {i: frozenset(roots_of(reward.instances, i)) for i in found}
    while now := {i: nodes for i, nodes in now.items() if len(nodes) < min(_LARGER * len(firsts[i]), LARGEST)}:
        larger = {i: _joined(neighbors, nodes, value) for i, nodes in now.items()}
        now = {}
        for i, (nodes, done) in _best(reward, larger).items():
            now[i] = nodes
            if done - NEARLY * len(nodes) > most[i]:
                most[i], found[i] = done - NEARLY * len(nodes), nodes
    return list(found.values())


def _joined(neighbors: Neighbors, nodes: NodeSet, value: Sequence[float]) -> list[NodeSet]:
    """Returns the nodes with each of their most probable neighbours, the most probable first."""
    border = {other for node in nodes for other in neighbors.of(node)} - nodes
    return [nodes | {node} for node in sorted(border, key=lambda node: (-value[node], node))[:LARGEST]]


def _best(reward: Reward, sets: Mapping[int, Sequence[NodeSet]]) -> dict[int, tuple[NodeSet, float]]:
    """Returns of each instance the set that does most, the first among equals, and how much it does."""
    asked = [(i, nodes) for i, choices in sets.items() for nodes in choices]
    best: dict[int, tuple[NodeSet, float]] = {}
    for (i, nodes), done in zip(asked, _done(reward, asked), strict=True):
        if i not in best or done > best[i][1]:
            best[i] = nodes, done
    return best


def _done(reward: Reward, sets: Sequence[tuple[int, NodeSet]]) -> list[float]:
    """Returns how much more probable the class of an instance is with only some nodes than without them."""
    if not sets:
        return []
    label = reward.target.label
    assert label is not None
    only, without = (predict_sets(reward, sets, without=way).double() for way in (False, True))
    return (only - without).gather(1, label[[i for i, _ in sets], None])[:, 0].tolist()
