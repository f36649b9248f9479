"""Random connected parts as large as those of an explanation: what it has to be better than."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.ops.streams import Stream

LARGEST = 40
"""Nodes that the parts of an explanation may have."""
_RANDOM = 40
_SURPASSED, _USUAL = 0.95, 0.5

NodeSet = frozenset[int]


class Neighbors:
    """Neighbours of single nodes, looked up as they are needed."""

    def __init__(self, instances: Instances) -> None:
        self.instances = instances
        self._ptr = instances.neighbor_ptr.tolist()
        self._neighbor = instances.neighbor.tolist()

    def of(self, node: int) -> list[int]:
        """Returns the neighbours of a node."""
        return self._neighbor[self._ptr[node] : self._ptr[node + 1]]

    def components(self, instance: int, nodes: NodeSet) -> list[NodeSet]:
        """Takes nodes apart into connected sets; those of a node's explanation stay together."""
        if int(self.instances.center[instance]) >= 0:
            return [nodes]
        left, found = set(nodes), []
        while left:
            reached, border = set(), [min(left)]
            while border:
                node = border.pop()
                if node in left:
                    left.remove(node)
                    reached.add(node)
                    border += self.of(node)
            found.append(frozenset(reached))
        return found


@dataclass(frozen=True)
class RandomParts:
    """Random parts of one instance.

    Attributes:
        sets: Their nodes, each set as large as all parts of the explanation where there is room.
        surpassed: Share of them that an explanation has to be better than.
    """

    sets: Sequence[NodeSet] = ()
    surpassed: float = _SURPASSED


def draw_random_parts(neighbors: Neighbors, i: int, parts: Sequence[NodeSet], shown: NodeSet, seed: int) -> RandomParts:
    """Grows random connected subgraphs of the sizes of the parts of an instance.

    They have none of the nodes of the parts. Where a graph has not as many others, they grow anywhere, and the usual
    one counts, as many of them hold most of the parts: what is nearly all of a graph is compared with what is as large,
    not with the little that is left.

    Args:
        neighbors: Of the instances.
        i: The instance.
        parts: Its parts.
        shown: The nodes of all of them.
        seed: Names what is random.
    """
    instances, surpassed = neighbors.instances, _SURPASSED
    roots = roots_of(instances, i)
    nodes = range(int(instances.ptr[i]), int(instances.ptr[i + 1]))
    room = [node for node in nodes if node not in shown or node in roots]
    if instances.level == "graph" and len(room) < len(shown):
        room, surpassed = list(nodes), _USUAL
    if len(room) <= len(roots):
        return RandomParts()
    inside, found = set(room), []
    key = int(combine(seed, Stream.random_parts, int(instances.own_key[i])))
    for line in uniform(key, torch.arange(_RANDOM)[:, None], torch.arange(2 * LARGEST + 2)).tolist():
        drawn: set[int] = set()
        numbers = iter(line * 4)
        for part in parts:
            grown = set(roots) or {room[int(next(numbers) * len(room))]}
            border = sorted({n for start in grown for n in neighbors.of(start)} & inside - grown)
            while border and len(grown) < len(part):
                node = border.pop(int(next(numbers, 0.5) * len(border)))
                grown.add(node)
                border = sorted((set(border) | set(neighbors.of(node)) & inside) - grown)
            drawn |= grown
        found.append(frozenset(drawn))
    return RandomParts(found, surpassed)


def roots_of(instances: Instances, i: int) -> list[int]:
    """Lists what every explanation of an instance holds: the explained node, both ends of a link, or nothing."""
    center = int(instances.center[i])
    if center < 0:
        return []
    return [center] if instances.other_end is None else [center, int(instances.other_end[i])]
