"""Finds the parts of explanations: what stands out and holds, else the first subgraph or the fewest nodes that do.

Candidates are measured on the model with everything else removed (:mod:`~gflowexplainer.inference.part_nodes`). Around
nodes whose class follows their own evidence they are grown (:mod:`~gflowexplainer.inference.enough_and_needed`). A
first subgraph that keeps the class and most of its probability is the one part. Otherwise, of the class of a graph, the
strongest set of every size is searched among the most probable nodes (:mod:`~gflowexplainer.inference.strongest_sets`),
and the one is taken that stands out most; where the first subgraph holds, only what is better, where it does not, one
that contains most of it. Around a node, a first subgraph that does not hold is extended until it does. Otherwise, where
the nodes without any one of which a class is lost hold it by themselves, they are the explanation. Otherwise, where the
best subgraph that was found preserves the prediction, it is the one part. Where it does not, nodes join one at a time,
the most probable first, or those first without which the model loses most: the smallest set that holds, completed by
those that are worth nearly as much. Of graphs, places elsewhere are added without any node of which the class is lost
(:mod:`~gflowexplainer.inference.needed_places`). What is taken is split into its connected parts, and those that nobody
needs or misses are dropped. The one part of a link is its best subgraph, which joins both ends: nothing else is tried.

Whether that says anything is measured too: against random connected subgraphs of the same sizes elsewhere in the graph,
or anywhere in one that has no room for them elsewhere; those of a link grow from both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.explanation.parts import Part, Parts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.needed_places import LOST
from gflowexplainer.inference.part_nodes import choose_nodes
from gflowexplainer.inference.preservation import (
    HELD,
    NEARLY,
    Preservation,
    measure_preservation,
    predict_sets,
    preservation_of,
)
from gflowexplainer.inference.random_parts import Neighbors, NodeSet, draw_random_parts
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import segment_sum
from gflowexplainer.rewards.base import Reward

_BETTER, _SURER, _CLEARLY = 0.15, 1.5, 0.25
"""How much more than random parts an explanation preserves, in probability, or as a share of the way to a value. Of a
class it does so in log-odds too, or clearly: a model that has learned nothing differs a little, but is never sure."""


@torch.no_grad()
def find_parts(reward: Reward, first: Subgraphs, node_probability: Tensor, seed: int) -> list[Parts]:
    """Finds the parts of every instance, all of them at once; nodes are places in the instance's graph.

    Args:
        reward: Evaluates the model on subgraphs of the instances.
        first: The best subgraph of each of the ``I`` instances, in order.
        node_probability: Probability of every node, shape ``[n]``.
        seed: Names the random subgraphs.
    """
    instances = reward.instances
    neighbors = Neighbors(instances)
    firsts = [frozenset(m for m in row if m >= 0) for row in first.members.tolist()]
    chosen = choose_nodes(reward, firsts, neighbors, node_probability)
    split = [neighbors.components(i, nodes) for i, nodes in enumerate(chosen)]
    split = _needed(reward, split)
    shown = [frozenset().union(*parts) for parts in split]
    together = measure_preservation(reward, list(enumerate(shown)))
    without = predict_sets(reward, list(enumerate(shown)), without=True)
    # A single part has been evaluated already.
    single = [(i, part) for i, parts in enumerate(split) if len(parts) > 1 for part in parts]
    alone, gone = ((predict_sets(reward, single, without=way).tolist() if single else []) for way in (False, True))
    random = _measure_random(reward, neighbors, split, shown, seed)
    better = _is_better(reward.target, together, random)
    found: list[list[Part]] = [[] for _ in split]
    for i, parts in enumerate(split):
        if len(parts) == 1:
            found[i] = [_part(instances, i, parts[0], together.prediction[i].tolist(), without[i].tolist())]
    for (i, nodes), only, rest in zip(single, alone, gone, strict=True):
        found[i].append(_part(instances, i, nodes, only, rest))
    return [
        Parts(
            tuple(sorted(named, key=lambda part: (_left(reward.target, i, part), part.nodes))),
            tuple(together.prediction[i].tolist()),
            tuple(without[i].tolist()),
            float(together.preserved[i]),
            None if random.preserved[i].isnan() else float(random.preserved[i]),
            bool(better[i]),
        )
        for i, named in enumerate(found)
    ]


def _part(instances: Instances, i: int, nodes: NodeSet, only: list[float], without: list[float]) -> Part:
    """Makes a part of an instance, whose nodes are places in it."""
    begin = int(instances.ptr[i])
    return Part(tuple(sorted(node - begin for node in nodes)), tuple(only), tuple(without))


def _left(target: Target, i: int, part: Part) -> float:
    """Returns how much of the prediction of an instance is left without a part."""
    gone = torch.tensor([part.prediction_without], dtype=torch.double, device=target.prediction.device)
    return float(preservation_of(target, gone, torch.tensor([i], device=gone.device)).preserved)


def _needed(reward: Reward, split: list[list[NodeSet]]) -> list[list[NodeSet]]:
    """Drops parts without which the others preserve the prediction as well, and so do all nodes, the smallest first."""
    several = [i for i, parts in enumerate(split) if len(parts) > 1]
    questions = [(i, frozenset().union(*split[i]) - part) for i in several for part in split[i]]
    if not questions:
        return split
    measured = measure_preservation(reward, [*questions, *((i, frozenset().union(*split[i])) for i in several)])
    preserved, same = measured.preserved.tolist(), measured.same_class.tolist()
    all_of = dict(zip(several, preserved[len(questions) :], strict=True))
    parts = [(i, part) for i in several for part in split[i]]
    able = [
        (i, part)
        for (i, part), fine, share in zip(parts, same, preserved, strict=False)
        if fine and share >= min(HELD, all_of[i] - NEARLY)
    ]
    left = measure_preservation(reward, able, without=True).preserved.tolist() if able else []
    spares = {one for one, share in zip(able, left, strict=True) if share >= LOST}
    kept, rests = list(split), {}
    for i in several:
        spare = [part for part in split[i] if (i, part) in spares]
        if spare and len(spare) < len(split[i]):
            # Each of them can go; unless all can go together, only the smallest goes.
            rests[i] = [part for part in split[i] if part not in spare]
            kept[i] = [part for part in split[i] if part != min(spare, key=len)]
        elif spare:
            kept[i] = [max(split[i], key=len)]
    if rests:
        answers = measure_preservation(reward, [(i, frozenset().union(*rest)) for i, rest in rests.items()])
        for (i, rest), share, fine in zip(
            rests.items(), answers.preserved.tolist(), answers.same_class.tolist(), strict=True
        ):
            if fine and share >= min(HELD, all_of[i] - NEARLY):
                kept[i] = rest
    return kept


@dataclass(frozen=True)
class _RandomParts:
    """What random parts of the sizes of those shown do on average, shape ``[I]``; ``nan`` where there are none.

    The best of them may be another copy of what is shown, and no reason to doubt it.

    Attributes:
        preserved: The share of the prediction that they preserve.
        strength: How strong the target is with only them.
    """

    preserved: Tensor
    strength: Tensor


def _measure_random(
    reward: Reward, neighbors: Neighbors, split: Sequence[Sequence[NodeSet]], shown: Sequence[NodeSet], seed: int
) -> _RandomParts:
    """Draws random parts of the sizes of those shown and measures them."""
    drawn = [draw_random_parts(neighbors, i, parts, shown[i], seed) for i, parts in enumerate(split)]
    questions = [(i, nodes) for i, found in enumerate(drawn) for nodes in found]
    nothing = torch.full((len(split),), torch.nan, dtype=torch.double, device=reward.instances.device)
    if not questions:
        return _RandomParts(nothing, nothing)
    measured = measure_preservation(reward, questions)
    owner = torch.tensor([i for i, _ in questions], device=nothing.device)
    strength = reward.target.strength(measured.prediction, owner).double()
    number = torch.bincount(owner, minlength=len(split))
    means = (segment_sum(value, owner, len(split)) / number for value in (measured.preserved, strength))
    return _RandomParts(*means)


def _is_better(target: Target, together: Preservation, random: _RandomParts) -> Tensor:
    """Returns whether what is shown preserves the prediction clearly better than random parts do, shape ``[I]``."""
    every = torch.arange(len(together.preserved), device=together.preserved.device)
    more = together.preserved - random.preserved
    if target.label is None:
        better = more >= _BETTER
    else:
        more = more * target.prediction.gather(1, target.label[:, None])[:, 0].double()
        surer = target.strength(together.prediction, every).double() - random.strength
        better = (more >= _CLEARLY) | ((more >= _BETTER) & (surer >= _SURER))
    return together.same_class & torch.where(random.preserved.isnan(), together.preserved >= HELD, better)
