"""Finds the parts of explanations: what stands out and holds, else the first subgraph or the fewest nodes that do.

Candidates are measured on the model with everything else removed. Of the class of a graph, the strongest set of every
size is searched among the most probable nodes (:mod:`~gflowexplainer.inference.strongest_sets`), and the one is taken
that stands out most. Otherwise, where the nodes without any one of which a class is lost hold it by themselves, they
are the explanation (around a node only if it has few others near). Otherwise, where the best subgraph that was found
preserves the prediction, it is the one part. Where it does not, nodes join one at a time (those of a node's
explanation connected to it), the most probable first, or those first without which the model loses most: the smallest
set that holds, completed by those that are worth nearly as much. What is taken is split into its connected parts, and
those that are not needed are dropped. The one part of a link is its best subgraph, which joins both ends: nothing else
is tried.

Whether that says anything is measured too: against random connected subgraphs of the same sizes elsewhere in the graph,
or anywhere in one that has no room for them elsewhere; those of a link grow from both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.explanation.parts import Part, Parts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.random_parts import LARGEST, Neighbors, NodeSet, draw_random_parts, roots_of
from gflowexplainer.inference.strongest_sets import find_strongest_sets, widest_gap
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import ranges
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.occlusion import losses

HELD = 0.9
"""Share of the prediction that has to be preserved."""
MARGIN = 0.1
"""How much better than random parts is better: in probability, or as a share of the way to a value."""
_FEW = 100
_NEARLY, _LITTLE = 0.02, 0.02


@dataclass(frozen=True)
class _Measured:
    """What the model predicts with only some node sets, ``[Q, C]``, and how much of the target is left, ``[Q]``."""

    prediction: Tensor
    preserved: Tensor
    same_class: Tensor

    @property
    def held(self) -> Tensor:
        """Which of them preserve the prediction, shape ``[Q]``."""
        return self.same_class & (self.preserved >= HELD)


@torch.no_grad()
def find_parts(reward: Reward, first: Subgraphs, node_probability: Tensor, seed: int) -> list[Parts]:
    """Finds the parts of every instance, all of them at once; nodes are places in the instance's graph.

    Args:
        reward: Asks the model about subgraphs of the instances.
        first: The best subgraph of each of the ``I`` instances, in order.
        node_probability: Probability of every node, shape ``[n]``.
        seed: Names the random subgraphs.
    """
    instances = reward.instances
    neighbors = Neighbors(instances)
    firsts = [frozenset(m for m in row if m >= 0) for row in first.members.tolist()]
    chosen = _smallest(reward, firsts, neighbors, node_probability)
    split = [neighbors.components(i, nodes) for i, nodes in enumerate(chosen)]
    split = _needed(reward, split)
    shown = [frozenset().union(*parts) for parts in split]
    together = _measure(reward, list(enumerate(shown)))
    without = _predict(reward, list(enumerate(shown)), without=True)
    # What is one part has been asked about already.
    single = [(i, part) for i, parts in enumerate(split) if len(parts) > 1 for part in parts]
    alone, gone = ((_predict(reward, single, without=way).tolist() if single else []) for way in (False, True))
    bound = _random_bound(reward, neighbors, split, shown, seed)
    found: list[list[Part]] = [[] for _ in split]
    for i, parts in enumerate(split):
        if len(parts) == 1:
            found[i] = [_part(instances, i, parts[0], together.prediction[i].tolist(), without[i].tolist())]
    for (i, nodes), only, rest in zip(single, alone, gone, strict=True):
        found[i].append(_part(instances, i, nodes, only, rest))
    results = []
    certainty = _certainty(reward.target)
    for i, named in enumerate(found):
        preserved, random = float(together.preserved[i]), bound[i]
        needed = HELD if random is None else random + MARGIN / certainty[i]
        better = bool(together.same_class[i]) and preserved >= needed
        results.append(
            Parts(
                tuple(sorted(named, key=lambda part: (_left(reward.target, i, part), part.nodes))),
                tuple(together.prediction[i].tolist()),
                tuple(without[i].tolist()),
                preserved,
                random,
                better,
            )
        )
    return results


def _part(instances: Instances, i: int, nodes: NodeSet, only: list[float], without: list[float]) -> Part:
    """Makes a part of an instance, whose nodes are places in it."""
    begin = int(instances.ptr[i])
    return Part(tuple(sorted(node - begin for node in nodes)), tuple(only), tuple(without))


def _left(target: Target, i: int, part: Part) -> float:
    """Says how much of the prediction of an instance is left without a part."""
    gone = torch.tensor([part.prediction_without], dtype=torch.double, device=target.prediction.device)
    return float(_preserved(target, gone, torch.tensor([i], device=gone.device)).preserved)


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
    def of(cls, instances: Instances, neighbors: Neighbors, i: int, worth: Tensor) -> _Growing:
        """Puts the nodes that are worth most first."""
        begin, end = int(instances.ptr[i]), int(instances.ptr[i + 1])
        value = worth[begin:end].tolist()
        center = int(instances.center[i])
        if center < 0:
            able = sorted(
                (node for node in range(begin, end) if value[node - begin] > 0), key=lambda n: -value[n - begin]
            )
            order = able[:LARGEST]
            return cls(order, [*(value[node - begin] for node in able[: LARGEST + 1]), 0.0])
        border, order = set(neighbors.of(center)), [center]
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
        """Says how many times what the next one is worth the last of the first nodes is; 0 where that is no order."""
        least = _LITTLE * self.worth[0] if self.worth else 0.0
        return (self.worth[size - 1] + least) / (self.worth[size] + least) if self.worth else 0.0


def _smallest(reward: Reward, firsts: Sequence[NodeSet], neighbors: Neighbors, probability: Tensor) -> list[NodeSet]:
    """Picks what is needed and holds, else the first subgraph if it holds, else few nodes that do or do most."""
    instances = reward.instances
    if instances.other_end is not None:
        return list(firsts)
    alone = _measure(reward, list(enumerate(firsts)))
    strong = _standing_out(reward, neighbors, firsts, alone.held.tolist(), probability)
    chosen = [strong.get(i, first) for i, first in enumerate(firsts)]
    asked = [i for i, held in enumerate(alone.held.tolist()) if not held and i not in strong]
    # Around a node there may be many others; there, what holds is enough.
    small = instances.node_counts <= _FEW if instances.level != "graph" else instances.node_counts > 0
    small[asked] = True
    small[list(strong)] = False
    lost = _lost(reward, torch.nonzero(small).flatten())
    for i, needed in _necessary(reward, neighbors, firsts, alone.held.tolist(), lost).items():
        chosen[i] = needed
        asked = [other for other in asked if other != i]
    lost = lost.abs() if reward.target.label is None else lost
    tried = [
        (i, growing, size)
        for i in asked
        for growing in (_Growing.of(instances, neighbors, i, worth) for worth in (probability, lost))
        for size in range(2, len(growing) + 1)
    ]
    if not tried:
        return chosen
    measured = _measure(reward, [(i, growing.first(size)) for i, growing, size in tried])
    held, preserved, same = (column.tolist() for column in (measured.held, measured.preserved, measured.same_class))
    places: dict[int, list[int]] = {i: [] for i in asked}
    for place, (i, _, _) in enumerate(tried):
        places[i].append(place)
    for i, here in places.items():
        holding = sorted((place for place in here if held[place]), key=lambda place: (tried[place][2], place))
        if holding:
            chosen[i] = _completed([tried[place][1:] for place in holding])
            continue
        able = sorted((place for place in here if same[place]), key=lambda place: (tried[place][2], place))
        most = max((preserved[place] for place in able), default=-1.0)
        if most > float(alone.preserved[i]) + MARGIN or (most >= 0 and not bool(alone.same_class[i])):
            _, growing, size = tried[next(place for place in able if preserved[place] >= most - _NEARLY)]
            chosen[i] = growing.first(size)
    return chosen


def _standing_out(
    reward: Reward, neighbors: Neighbors, firsts: Sequence[NodeSet], held: Sequence[bool], probability: Tensor
) -> dict[int, NodeSet]:
    """Picks of graphs whose class their most probable nodes hold the strong set that stands out most from other nodes.

    Where the first subgraph holds, it is that one or another that is connected and about as large.
    """
    instances, target = reward.instances, reward.target
    if instances.level != "graph" or target.label is None:
        return {}
    value, ptr = probability.tolist(), instances.ptr.tolist()
    starts = {
        i: frozenset(sorted(range(ptr[i], ptr[i + 1]), key=lambda node: (-value[node], node))[:LARGEST])
        for i in range(len(instances))
    }

    def measure(asked: Sequence[tuple[int, NodeSet]]) -> list[tuple[float, bool]]:
        found = _measure(reward, asked)
        owner = torch.tensor([i for i, _ in asked], device=found.prediction.device)
        strength = target.strength(found.prediction, owner)
        return list(zip(strength.tolist(), found.held.tolist(), strict=True))

    sizes = {i: len(first) for i, first in enumerate(firsts) if held[i]}
    picked = {}
    for i, strong in find_strongest_sets(measure, neighbors, starts, value, sizes).items():
        allowed = sorted((one.nodes for one in strong.values() if one.held), key=len)
        if held[i]:
            size = sizes[i]
            near = [nodes for nodes in allowed if size / 2 <= len(nodes) <= 2 * size]
            allowed = [nodes for nodes in near if len(neighbors.components(i, nodes)) == 1]
            allowed += [firsts[i]] if size in strong else []
        elif allowed:
            allowed = [nodes for nodes in allowed if len(nodes) <= 2 * len(allowed[0])]
        nodes = widest_gap(strong, allowed, {node: value[node] for node in range(ptr[i], ptr[i + 1])})
        if nodes:
            picked[i] = nodes
    return picked


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
    answers = _measure(reward, [(i, growing.first(size)) for i, growing, size in tried]).held.tolist()
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


def _needed(reward: Reward, split: list[list[NodeSet]]) -> list[list[NodeSet]]:
    """Drops parts without which the others preserve the prediction as well, the smallest first."""
    several = [i for i, parts in enumerate(split) if len(parts) > 1]
    questions = [(i, frozenset().union(*split[i]) - part) for i in several for part in split[i]]
    if not questions:
        return split
    measured = _measure(reward, [*questions, *((i, frozenset().union(*split[i])) for i in several)])
    preserved, same = measured.preserved.tolist(), measured.same_class.tolist()
    all_of = dict(zip(several, preserved[len(questions) :], strict=True))
    kept, place, rests = list(split), 0, {}
    for i in several:
        spare = []
        for part in split[i]:
            if same[place] and preserved[place] >= min(HELD, all_of[i] - _NEARLY):
                spare.append(part)
            place += 1
        if spare and len(spare) < len(split[i]):
            # Each of them can go; unless all can go together, only the smallest goes.
            rests[i] = [part for part in split[i] if part not in spare]
            kept[i] = [part for part in split[i] if part != min(spare, key=len)]
        elif spare:
            kept[i] = [max(split[i], key=len)]
    if rests:
        answers = _measure(reward, [(i, frozenset().union(*rest)) for i, rest in rests.items()])
        for (i, rest), share, fine in zip(
            rests.items(), answers.preserved.tolist(), answers.same_class.tolist(), strict=True
        ):
            if fine and share >= min(HELD, all_of[i] - _NEARLY):
                kept[i] = rest
    return kept


def _random_bound(
    reward: Reward, neighbors: Neighbors, split: Sequence[Sequence[NodeSet]], shown: Sequence[NodeSet], seed: int
) -> list[float | None]:
    """Returns what random parts of the sizes of those shown preserve; ``None`` where there are none."""
    drawn = [draw_random_parts(neighbors, i, parts, shown[i], seed) for i, parts in enumerate(split)]
    questions = [(i, nodes) for i, found in enumerate(drawn) for nodes in found.sets]
    bound: list[float | None] = [None] * len(split)
    if questions:
        value = _measure(reward, questions).preserved
        owner = torch.tensor([i for i, _ in questions], device=value.device)
        for i, found in enumerate(drawn):
            if found.sets:
                bound[i] = float(value[owner == i].quantile(found.surpassed))
    return bound


def _certainty(target: Target) -> list[float]:
    """Returns the probability of the class of each instance; 1 for values."""
    if target.label is None:
        return [1.0] * target.prediction.size(0)
    return target.prediction.gather(1, target.label[:, None])[:, 0].clamp(min=1e-6).tolist()


def _measure(reward: Reward, questions: Sequence[tuple[int, NodeSet]]) -> _Measured:
    """Asks the model about node sets with everything else removed."""
    prediction = _predict(reward, questions)
    return _preserved(reward.target, prediction, torch.tensor([i for i, _ in questions], device=prediction.device))


def _predict(reward: Reward, questions: Sequence[tuple[int, NodeSet]], *, without: bool = False) -> Tensor:
    width = max(len(nodes) for _, nodes in questions)
    device = reward.instances.device
    members = torch.tensor([[*sorted(nodes), *[-1] * (width - len(nodes))] for _, nodes in questions], device=device)
    owner = torch.tensor([i for i, _ in questions], device=device)
    # Whatever the reward measures by, nodes that are gone are gone.
    return reward.predict(Subgraphs(owner, members), without=without, removal=Removal.induced)


def _preserved(target: Target, prediction: Tensor, instance: Tensor) -> _Measured:
    """Says how much of the target predictions ``[Q, C]`` preserve."""
    whole = target.prediction[instance].to(prediction)
    if target.label is None:
        missing = (prediction - whole).abs().sum(dim=1) / target.scale[instance].to(prediction)
        return _Measured(prediction, (1 - missing).clamp(min=0).double(), torch.ones_like(missing, dtype=torch.bool))
    label = target.label[instance, None]
    left, all_of_it = (values.gather(1, label)[:, 0].double() for values in (prediction, whole))
    share = (left / all_of_it.clamp(min=1e-12)).clamp(max=1)
    return _Measured(prediction, share, prediction.argmax(dim=1) == label[:, 0])
