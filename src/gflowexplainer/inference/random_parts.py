"""Random connected parts as large as those of an explanation: what it has to be better than."""

from __future__ import annotations

from collections.abc import Sequence, Set

import torch

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import Stream, combine, uniform

LARGEST = 40
"""Nodes that the parts of an explanation may have."""
_RANDOM = 40

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

    def around(self, nodes: Set[int]) -> NodeSet:
        """Returns the nodes next to some nodes, without these."""
        return frozenset(other for node in nodes for other in self.of(node)) - nodes

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


def draw_random_parts(
    neighbors: Neighbors, i: int, parts: Sequence[NodeSet], shown: NodeSet, seed: int
) -> list[NodeSet]:
    """Grows random connected subgraphs of the sizes of the parts of an instance; none where there is nothing else.

    They have none of the nodes of the parts, but an explained one. Where there are not as many others, they grow
    anywhere: what is nearly all of a graph is compared with what is as large, not with the little that is left, and
    what is all of it with all but one node.

    Args:
        neighbors: Of the instances.
        i: The instance.
        parts: Its parts.
        shown: The nodes of all of them.
        seed: Names what is random.

    Returns:
        Sets of nodes, each as large as all parts together where there is room.
    """
    instances = neighbors.instances
    roots = roots_of(instances, i)
    nodes = range(int(instances.ptr[i]), int(instances.ptr[i + 1]))
    if len(nodes) <= max(len(roots), 1):
        return []
    room = [node for node in nodes if node not in shown or node in roots]
    if len(room) < len(shown):
        room = list(nodes)
    most = len(nodes) - 1
    inside, found = set(room), list[NodeSet]()
    key = int(combine(seed, Stream.random_parts, int(instances.own_key[i])))
    for line in uniform(key, torch.arange(_RANDOM)[:, None], torch.arange(2 * LARGEST + 2)).tolist():
        drawn: set[int] = set()
        numbers = iter(line * 4)
        for part in parts:
            grown = set(roots) or {room[int(next(numbers) * len(room))]}
            border = sorted({n for start in grown for n in neighbors.of(start)} & inside - grown)
            while border and len(grown) < len(part) and len(drawn | grown) < most:
                node = border.pop(int(next(numbers, 0.5) * len(border)))
                grown.add(node)
                border = sorted((set(border) | set(neighbors.of(node)) & inside) - grown)
            drawn |= grown
        found.append(frozenset(drawn))
    return found


def roots_of(instances: Instances, i: int) -> list[int]:
    """Lists what every explanation of an instance holds: the explained node, both ends of a link, or nothing."""
    center = int(instances.center[i])
    if center < 0:
        return []
    return [center] if instances.other_end is None else [center, int(instances.other_end[i])]
