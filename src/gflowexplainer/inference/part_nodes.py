"""Chooses the nodes that parts are made of: what stands out and holds, else the first subgraph or few nodes that do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.enough_and_needed import grow_enough_and_needed
from gflowexplainer.inference.loose_ends import without_loose_ends
from gflowexplainer.inference.needed_places import with_needed_places
from gflowexplainer.inference.preservation import MARGIN, NEARLY, Preservation, measure_preservation
from gflowexplainer.inference.random_parts import LARGEST, Neighbors, NodeSet, roots_of
from gflowexplainer.inference.strongest_sets import (
    EQUAL,
    LITTLE_PROBABILITY,
    Measure,
    Sizes,
    StrongSet,
    complete_sets,
    find_strongest_sets,
    gap_around,
    keep_strongest,
    widest_gap,
)
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import ranges
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.occlusion import losses

_FEW = 100
_ENOUGH, _FALLEN = 0.75, 1.0
"""Share of a class's probability, and fall of its log-odds, with which a first subgraph needs nothing more."""
_MOST = 0.75
"""Share of the first subgraph, by probability, that what holds in its place contains."""
_LITTLE = 0.02
_PLAINER = 1.5
"""How many times as far as a part of it a first subgraph has to stand out for that part not to be taken."""


@dataclass(frozen=True)
class _Growing:
    """Nodes of an instance in the order in which they join; those of a node's explanation are connected to it.

    Attributes:
        order: The nodes, at most :data:`LARGEST`.
        worth: What each of them is worth, and what the next one would be.
    """

    order: list[int]
    worth: list[float]

    @classmethod
    def of(
        cls, instances: Instances, neighbors: Neighbors, i: int, worth: Tensor, start: NodeSet = frozenset()
    ) -> _Growing:
        """Puts the nodes that are worth most first; around a node, after those that it starts with."""
        begin, end = int(instances.ptr[i]), int(instances.ptr[i + 1])
        value = worth[begin:end].tolist()
        center = int(instances.center[i])
        if center < 0:
            able = sorted(
                (node for node in range(begin, end) if value[node - begin] > 0), key=lambda n: -value[n - begin]
            )
            order = able[:LARGEST]
            return cls(order, [*(value[node - begin] for node in able[: LARGEST + 1]), 0.0])
        order = sorted(start) or [center]
        border = neighbors.around(set(order))
        while border and len(order) < LARGEST:
            node = max(border, key=lambda n: (value[n - begin], -n))
            order.append(node)
            border = (border | set(neighbors.of(node))) - set(order)
        return cls(order, [])

    def __len__(self) -> int:
        return len(self.order)

    def first(self, size: int) -> NodeSet:
        """Returns the first nodes."""
        return frozenset(self.order[:size])

    def gap(self, size: int) -> float:
        """Returns the worth of the last of the first nodes as a multiple of the next one's; 0 where nodes have none."""
        least = _LITTLE * self.worth[0] if self.worth else 0.0
        return (self.worth[size - 1] + least) / (self.worth[size] + least) if self.worth else 0.0


def choose_nodes(reward: Reward, firsts: Sequence[NodeSet], neighbors: Neighbors, probability: Tensor) -> list[NodeSet]:
    """Chooses nodes of every instance that preserve its prediction, or most of it.

    Args:
        reward: Evaluates the model on subgraphs of the instances.
        firsts: The first subgraph of each instance.
        neighbors: Of the instances.
        probability: Probability of every node, shape ``[n]``.
    """
    instances = reward.instances
    if instances.other_end is not None:
        return list(firsts)
    if instances.level == "node" and reward.follows_own:
        return grow_enough_and_needed(reward, neighbors, firsts, probability.tolist())
    alone = measure_preservation(reward, list(enumerate(firsts)))
    held = alone.held.tolist()
    settled = _enough(reward.target, alone)
    strong = _standing_out(reward, neighbors, firsts, held, probability, settled)
    settled |= strong.keys()
    asked = [i for i, so in enumerate(held) if not so and i not in settled]
    # Around a node there may be many others; there, what holds is enough.
    small = instances.node_counts <= _FEW if instances.level != "graph" else instances.node_counts > 0
    small[asked] = True
    small[list(settled)] = False
    lost = _lost(reward, torch.nonzero(small).flatten())
    extended = _extended(reward, neighbors, firsts, asked, (probability, lost))
    needed = {
        i: nodes
        for i, nodes in _necessary(reward, neighbors, firsts, held, lost).items()
        if not (held[i] and _is_outdone(instances, i, nodes, firsts[i], probability, lost))
    }
    found = needed | strong | extended
    chosen = dict(enumerate(firsts)) | found
    lost = lost.abs() if reward.target.label is None else lost
    left = [i for i in asked if i not in found]
    chosen |= _grown(reward, neighbors, left, alone, (probability, lost))
    if instances.level != "graph" or reward.target.label is None:
        return list(chosen.values())
    value = probability.tolist()
    trimmed = without_loose_ends(_measure(reward), neighbors, chosen, value)
    return list(with_needed_places(reward, neighbors, trimmed, value).values())


def _measure(reward: Reward) -> Measure:
    """Returns a function that measures how strong a class is with only some nodes, and whether they preserve it."""

    def measure(asked: Sequence[tuple[int, NodeSet]]) -> list[tuple[float, bool]]:
        found = measure_preservation(reward, asked)
        owner = torch.tensor([i for i, _ in asked], device=found.prediction.device)
        strength = reward.target.strength(found.prediction, owner)
        return list(zip(strength.tolist(), found.held.tolist(), strict=True))

    return measure


def _grown(
    reward: Reward, neighbors: Neighbors, asked: Sequence[int], alone: Preservation, worths: Sequence[Tensor]
) -> dict[int, NodeSet]:
    """Grows sets node by node in the order of their worth: the smallest that holds, else a small one that does most.

    Args:
        reward: Evaluates the model on subgraphs of the instances.
        neighbors: Of the instances.
        asked: Instances to grow sets of.
        alone: What their first subgraphs preserve; a set that does hardly more is not returned.
        worths: Ways to say what every node is worth, each of shape ``[n]``.
    """
    tried = [
        (i, growing, size)
        for i in asked
        for growing in (_Growing.of(reward.instances, neighbors, i, worth) for worth in worths)
        for size in range(2, len(growing) + 1)
    ]
    if not tried:
        return {}
    measured = measure_preservation(reward, [(i, growing.first(size)) for i, growing, size in tried])
    held, preserved, same = (column.tolist() for column in (measured.held, measured.preserved, measured.same_class))
    places: dict[int, list[int]] = {i: [] for i in asked}
    for place, (i, _, _) in enumerate(tried):
        places[i].append(place)
    found: dict[int, NodeSet] = {}
    for i, here in places.items():
        holding = sorted((place for place in here if held[place]), key=lambda place: (tried[place][2], place))
        if holding:
            found[i] = _completed([tried[place][1:] for place in holding])
            continue
        able = sorted((place for place in here if same[place]), key=lambda place: (tried[place][2], place))
        most = max((preserved[place] for place in able), default=-1.0)
        if most > float(alone.preserved[i]) + MARGIN or (most >= 0 and not bool(alone.same_class[i])):
            _, growing, size = tried[next(place for place in able if preserved[place] >= most - NEARLY)]
            found[i] = growing.first(size)
    return found


def _enough(target: Target, alone: Preservation) -> set[int]:
    """Returns the instances whose first subgraph does not hold, but keeps the class and most of it, and of its odds."""
    if target.label is None:
        return set()
    every = torch.arange(len(alone.preserved), device=alone.prediction.device)
    fallen = target.strength(target.prediction, every) - target.strength(alone.prediction, every)
    enough = alone.same_class & ~alone.held & (alone.preserved >= _ENOUGH) & (fallen <= _FALLEN)
    return set(torch.nonzero(enough).flatten().tolist())


def _standing_out(
    reward: Reward,
    neighbors: Neighbors,
    firsts: Sequence[NodeSet],
    held: Sequence[bool],
    probability: Tensor,
    settled: Set[int],
) -> dict[int, NodeSet]:
    """Picks of graphs whose class their most probable nodes hold the strong set that stands out most from other nodes.

    Where the first subgraph holds, it is that one or another that is connected, about as large, and better. Where it
    does not, it is one that contains most of it, if there is one.
    """
    instances, target = reward.instances, reward.target
    if instances.level != "graph" or target.label is None or len(settled) == len(firsts):
        return {}
    value, ptr = probability.tolist(), instances.ptr.tolist()
    starts = {
        i: frozenset(sorted(range(ptr[i], ptr[i + 1]), key=lambda node: (-value[node], node))[:LARGEST])
        for i in range(len(instances))
        if i not in settled
    }

    measure = _measure(reward)
    sizes = {i: len(first) for i, first in enumerate(firsts) if held[i]}
    completed = complete_sets(measure, neighbors, {i: firsts[i] for i in starts if not held[i]}, starts, value)
    picked = {}
    for i, strong in find_strongest_sets(measure, neighbors, starts, value, sizes).items():
        for one in completed.get(i, ()):
            keep_strongest(strong, one)
        allowed = sorted((one.nodes for one in strong.values() if one.held), key=len)
        here = {node: value[node] for node in range(ptr[i], ptr[i + 1])}
        if held[i]:
            size = sizes[i]
            near = [nodes for nodes in allowed if size / 2 <= len(nodes) <= 2 * size]
            allowed = [nodes for nodes in near if len(neighbors.components(i, nodes)) == 1]
            allowed += [firsts[i]] if size in strong else []
            allowed = _improving(allowed, firsts[i], strong, here, reward.min_nodes)
        elif allowed:
            near, whole = _around(allowed, firsts[i], completed[i], value)
            if whole is not None:
                strong = strong | {len(whole.nodes): whole}
            allowed = near or allowed
            allowed = [nodes for nodes in allowed if len(nodes) <= 2 * len(allowed[0])]
        nodes = widest_gap(strong, allowed, here)
        if nodes:
            picked[i] = nodes
    return picked


def _improving(
    allowed: Sequence[NodeSet], first: NodeSet, strong: Sizes, value: Mapping[int, float], smallest: int
) -> list[NodeSet]:
    """Drops sets that are no better than a first subgraph that holds: larger ones, and parts of it.

    A model that is sure of a class with most of what it looks at is no surer with the rest. So a part of the first
    subgraph has to stand out nearly as far as all of it, and what is larger has to be stronger. What is smaller than
    any subgraph may do: it had to have company, which need not belong to it.
    """
    known, gap = strong.get(len(first)), gap_around(first, value, LITTLE_PROBABILITY)
    least = known.strength + EQUAL if known is not None and known.nodes == first else -math.inf

    def improves(nodes: NodeSet) -> bool:
        if nodes < first and len(nodes) >= smallest:
            return _PLAINER * gap_around(nodes, value, LITTLE_PROBABILITY) >= gap
        return not nodes > first or strong[len(nodes)].strength >= least

    return [nodes for nodes in allowed if improves(nodes)]


def _around(
    allowed: Sequence[NodeSet], first: NodeSet, completed: Sequence[StrongSet], value: Sequence[float]
) -> tuple[list[NodeSet], StrongSet | None]:
    """Returns the sets that contain most of the first subgraph, and what it was completed to if none is smaller.

    Sets of nodes that are all more probable than those of the first subgraph need not contain it.

    Returns:
        All of these sets, and the one among them that the first subgraph was completed to; ``None`` if it is not.
    """
    most, top = _MOST * sum(value[node] for node in first), max(value[node] for node in first)
    near = [
        nodes
        for nodes in allowed
        if sum(value[node] for node in nodes & first) >= most or min(value[node] for node in nodes) > top
    ]
    if completed and completed[-1].held and not any(len(nodes) <= len(completed[-1].nodes) for nodes in near):
        return [completed[-1].nodes, *near], completed[-1]
    return near, None


def _extended(
    reward: Reward,
    neighbors: Neighbors,
    firsts: Sequence[NodeSet],
    asked: Sequence[int],
    worths: Sequence[Tensor],
) -> dict[int, NodeSet]:
    """Extends first subgraphs around nodes whose class they do not hold, up to twice their size, until they do."""
    instances = reward.instances
    if instances.level == "graph" or reward.target.label is None:
        return {}
    tried = [
        (i, growing.first(size))
        for i in asked
        for growing in (_Growing.of(instances, neighbors, i, worth, firsts[i]) for worth in worths)
        for size in range(len(firsts[i]) + 1, min(len(growing), 2 * len(firsts[i])) + 1)
    ]
    found: dict[int, NodeSet] = {}
    if tried:
        for (i, nodes), holds in zip(tried, measure_preservation(reward, tried).held.tolist(), strict=True):
            if holds and (i not in found or len(nodes) < len(found[i])):
                found[i] = nodes
    return found


def _is_outdone(
    instances: Instances, i: int, needed: NodeSet, first: NodeSet, probability: Tensor, lost: Tensor
) -> bool:
    """Returns whether a first subgraph around a node stands out at least as far as what is needed there."""
    if instances.level == "graph":
        return False
    said = _stands_out(instances, i, first, probability, LITTLE_PROBABILITY)
    return _stands_out(instances, i, needed, lost, _LITTLE) <= said


def _stands_out(instances: Instances, i: int, nodes: NodeSet, worth: Tensor, little: float) -> float:
    """Returns how far nodes around an explained one stand out from others; it does not count itself."""
    begin, end, center = int(instances.ptr[i]), int(instances.ptr[i + 1]), int(instances.center[i])
    value = dict(enumerate(worth[begin:end].tolist(), begin))
    value[center] = max(value.values())
    return gap_around(nodes, value, little)


def _lost(reward: Reward, some: Tensor) -> Tensor:
    """Returns what the model loses without each node of some instances, 0 in others, shape ``[n]``.

    What explaining has asked already is not asked again; but the own evidence of a node's class holds more than losses.
    """
    instances = reward.instances
    lost = torch.zeros(instances.num_nodes, dtype=torch.double, device=instances.device)
    _, nodes = ranges(instances.ptr[some], instances.node_counts[some])
    if reward.own is not None and (instances.level == "graph" or reward.target.label is None):
        lost[nodes] = reward.own[nodes]
    elif nodes.numel():
        lost[nodes] = losses(reward.predictor, instances.select(some), reward.target.select(some))[:, 0].double()
    return lost


def _necessary(
    reward: Reward, neighbors: Neighbors, firsts: Sequence[NodeSet], held: Sequence[bool], lost: Tensor
) -> dict[int, NodeSet]:
    """Finds instances whose class is held by the nodes that are needed one by one, completed, and names these nodes.

    A first subgraph that holds too is only replaced by them where it is about as large: a node too few or too many.
    """
    instances, target = reward.instances, reward.target
    if target.label is None:
        return {}
    every = torch.arange(len(instances), device=instances.device)
    whole = target.strength(target.prediction, every)[instances.owner].double()
    needed = (whole - lost).sigmoid() < whole.sigmoid() / 2
    tried = []
    for i, (first, holds) in enumerate(zip(firsts, held, strict=True)):
        begin, end = int(instances.ptr[i]), int(instances.ptr[i + 1])
        nodes = frozenset(roots_of(instances, i)) | {
            begin + place for place in needed[begin:end].nonzero().flatten().tolist()
        }
        if not 2 <= len(nodes) <= LARGEST or (holds and not len(first) / 2 <= len(nodes) <= 2 * len(first)):
            continue
        growing = _Growing.of(instances, neighbors, i, lost)
        # Those around a node have to be connected to it.
        if growing.first(len(nodes)) == nodes:
            tried += [(i, growing, size) for size in range(len(nodes), min(2 * len(nodes), len(growing)) + 1)]
    if not tried:
        return {}
    holding: dict[int, list[tuple[_Growing, int]]] = {}
    answers = measure_preservation(reward, [(i, growing.first(size)) for i, growing, size in tried]).held.tolist()
    for (i, growing, size), holds in zip(tried, answers, strict=True):
        if holds:
            holding.setdefault(i, []).append((growing, size))
    return {i: _completed(sets) for i, sets in holding.items()}


def _completed(holding: Sequence[tuple[_Growing, int]]) -> NodeSet:
    """Takes the smallest set that holds, and nodes that are worth nearly as much as those inside.

    A model often holds a prediction without the last node of what it looks at. Between that node and the next one that
    it does not look at there is a gap, and the widest one, up to twice the smallest size, is where the set ends.
    """
    growing, least = holding[0]
    sizes = [size for other, size in holding if other is growing and size <= 2 * least]
    return growing.first(max(sizes, key=lambda size: (growing.gap(size), -size)))
