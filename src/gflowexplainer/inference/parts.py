r"""The parts of an explanation: the one set of nodes that is enough and needed, grown from the sampled subgraphs.

.. math:: J(S) = p(\text{only } S) - p(\text{without } S) - \pi\, |S|

with the probability :math:`p` of the explained class on the induced subgraph, and a small price :math:`\pi` a node. Of
a value, :math:`p` is the share of it that is left, in units of how far it moves when all else is removed. The set
grows by joining, for one node after the other, the most probable subgraph that contains it, the most probable ones
first; where :math:`J` is largest on this way is shown. It is split into its connected parts, and held against random
sets of the same sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.explanation.findings import Part, Parts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.random_parts import LARGEST, Neighbors, NodeSet, draw_random_parts, roots_of
from gflowexplainer.model.target import Target
from gflowexplainer.rewards.base import Reward
from gflowexplainer.steering import MARGIN, PRICE

_JOINED = 32
"""Sampled subgraphs that may be joined, the most probable ones."""


class PartsSearch:
    """Finds the parts of all instances of a reward at once; the model is asked about many sets in one call.

    Args:
        reward: Evaluates the model on subgraphs of the instances.
        sampled: Sampled subgraphs of each instance, as sets of flat positions, the most probable first.
        probability: Probability of every node, shape ``[n]``.
        seed: Names the random sets.
    """

    def __init__(self, reward: Reward, sampled: Sequence[Sequence[NodeSet]], probability: Tensor, seed: int) -> None:
        self.reward, self.sampled, self.seed = reward, sampled, seed
        self.neighbors, self.probability = Neighbors(reward.instances), probability.tolist()
        self.roots = [frozenset(roots_of(reward.instances, i)) for i in range(len(reward.instances))]
        self._known: dict[tuple[int, NodeSet], tuple[list[float], list[float], float]] = {}

    def run(self) -> list[Parts]:
        """Returns the parts of each instance; nodes are places in the instance's graph."""
        chosen = self._grow()
        split = [self.neighbors.components(i, nodes) for i, nodes in enumerate(chosen)]
        drawn = [
            draw_random_parts(self.neighbors, i, parts, chosen[i], self.seed) for i, parts in enumerate(split)
        ]  # fmt: skip
        wanted = [(i, nodes) for i, found in enumerate(drawn) for nodes in found]
        self._measure([*wanted, *((i, part) for i, parts in enumerate(split) for part in parts)])
        return [self._parts(i, split[i], chosen[i], drawn[i]) for i in range(len(chosen))]

    def _grow(self) -> list[NodeSet]:
        """Grows one set in each instance, and stops where it was best."""
        ways = [self._way(found) for found in self.sampled]
        self._measure((i, nodes) for i, way in enumerate(ways) for nodes in way)
        return [max(way, key=lambda nodes, i=i: self._value(i, nodes)) for i, way in enumerate(ways)]  # type: ignore[misc]

    def _way(self, sampled: Sequence[NodeSet]) -> list[NodeSet]:
        """Lists what sampled subgraphs are together, the first one, the first two, and so on."""
        way = [sampled[0]]
        for other in sampled[1:]:
            joined = way[-1] | other
            if len(joined) <= LARGEST and joined != way[-1]:
                way.append(joined)
        return way

    def _measure(self, sets: Iterable[tuple[int, NodeSet]]) -> None:
        """Asks the model about sets that it was not asked about yet."""
        new = [one for one in dict.fromkeys(sets) if one not in self._known]
        if not new:
            return
        instances = self.reward.instances
        subgraphs = Subgraphs.of_lists([i for i, _ in new], [sorted(nodes) for _, nodes in new], instances.device)
        # Whatever the reward measures by, nodes that are gone are gone.
        only, without = (
            self.reward.predict(subgraphs, without=way, removal=Removal.induced) for way in (False, True)
        )  # fmt: skip
        worth = left(self.reward.target, only, subgraphs.instance) - left(
            self.reward.target, without, subgraphs.instance
        )
        for one, *found in zip(new, only.tolist(), without.tolist(), worth.tolist(), strict=True):
            self._known[one] = tuple(found)

    def _value(self, i: int, nodes: NodeSet) -> float:
        return self._known[i, nodes][2] - PRICE * len(nodes - self.roots[i])

    def _parts(self, i: int, split: Sequence[NodeSet], nodes: NodeSet, drawn: Sequence[NodeSet]) -> Parts:
        """Puts the parts of an instance together, those that are needed most first."""
        only, without, _ = self._known[i, nodes]
        target, place = self.reward.target, torch.tensor([i], device=self.reward.instances.device)

        def share(row: list[float]) -> float:
            return float(left(target, torch.tensor([row], device=place.device), place))

        whole = share(target.prediction[i].tolist())
        by_random = [share(self._known[i, other][0]) for other in drawn]
        values = [self._value(i, other) for other in drawn]
        kept, random = share(only), sum(by_random) / len(by_random) if drawn else None
        usual = sum(values) / len(values) if values else 0.0
        holds = self._value(i, nodes) >= usual + MARGIN
        begin = int(self.reward.instances.ptr[i])
        found = [
            Part(tuple(sorted(node - begin for node in part)), *map(tuple, self._known[i, part][:2])) for part in split
        ]
        found.sort(key=lambda part: (share(list(part.prediction_without)), part.nodes))
        return Parts(
            tuple(found),
            tuple(only),
            tuple(without),
            min(kept / max(whole, 1e-12), 1.0),
            None if random is None else min(random / max(whole, 1e-12), 1.0),
            holds,
        )


def left(target: Target, prediction: Tensor, instance: Tensor) -> Tensor:
    """Returns how much is left of what predictions ``[Q, C]`` are to preserve: a probability, or a share, ``[Q]``."""
    if target.label is not None:
        return prediction.gather(1, target.label[instance, None])[:, 0].double()
    missing = (prediction - target.prediction[instance].to(prediction)).abs().sum(dim=1)
    return (1 - missing / target.scale[instance].to(prediction)).clamp(min=0).double()


def sampled_sets(
    instances: Instances, subgraphs: Subgraphs, ranked: Tensor, most: int = _JOINED
) -> list[list[NodeSet]]:
    """Lists the most probable subgraph that contains each node, of each instance, as sets of flat positions.

    Args:
        instances: The instances.
        subgraphs: Sampled subgraphs.
        ranked: Rows of them, the most probable ones of an instance first.
        most: Subgraphs of an instance that are listed at most.
    """
    members = subgraphs.members[ranked]
    rank, slot = torch.nonzero(members >= 0, as_tuple=True)
    first = torch.full((instances.num_nodes,), len(ranked), device=ranked.device)
    first.scatter_reduce_(0, members[rank, slot], rank, "amin")
    found: list[list[NodeSet]] = [[] for _ in range(len(instances))]
    for row in ranked[torch.unique(first[first < len(ranked)])].tolist():
        sets = found[int(subgraphs.instance[row])]
        if len(sets) < most:
            sets.append(frozenset(node for node in subgraphs.members[row].tolist() if node >= 0))
    return found
