"""Cut vertices of one graph at a time in plain Python: Theorem 1 as it is printed, and a search from scratch.

Both in the same language, so that their times compare the algorithms and not what they are written in.
"""

from __future__ import annotations

from collections.abc import Sequence


class GrowingCutVertices:
    """Theorem 1 for a single growing subgraph: the rows of the cut vertex matrix that are not zero.

    ``groups[v][u]`` is the child group that member ``u`` falls into when the cut vertex ``v`` is taken away; members
    are numbered in the order they came.
    """

    def __init__(self) -> None:
        self.size = 0
        self.groups: dict[int, list[int]] = {}

    def add(self, neighbors: Sequence[int]) -> None:
        """Adds a node that is joined to the members ``neighbors`` and updates the cut vertices (equations 14 to 17)."""
        if self.size >= 2:
            if len(neighbors) == 1:
                self._attach(neighbors[0])
            else:
                self._join(neighbors)
        self.size += 1

    def _attach(self, anchor: int) -> None:
        """Case 1: the new node hangs on one member, from now on a cut vertex."""
        for vertex, row in self.groups.items():
            row.append(max(row) + 1 if vertex == anchor else row[anchor])
        if anchor not in self.groups:
            self.groups[anchor] = [1] * self.size + [2]
            self.groups[anchor][anchor] = 0

    def _join(self, neighbors: Sequence[int]) -> None:
        """Case 2: the new node joins several members, and with them the child groups they are in."""
        held_together = []
        for vertex, row in self.groups.items():
            touched = {row[other] for other in neighbors} - {0}
            label = max(touched)
            if len(touched) > 1:
                if touched == set(row) - {0}:
                    held_together.append(vertex)
                    continue
                row[:] = [label if group in touched else group for group in row]
            row.append(label)
        for vertex in held_together:
            del self.groups[vertex]


def tarjan(neighbors: Sequence[Sequence[int]]) -> set[int]:
    """Finds the cut vertices of a connected graph by one depth-first search, without recursion.

    A vertex other than the root is a cut vertex if none below one of its children reaches above it; the root is one if
    it has two children (Hopcroft and Tarjan, 1973).

    Args:
        neighbors: Neighbours of each node.
    """
    found: set[int] = set()
    number = [-1] * len(neighbors)
    lowest = [0] * len(neighbors)
    if not neighbors:
        return found
    number[0] = 0
    count, children = 1, 0
    stack = [(0, -1, iter(neighbors[0]))]
    while stack:
        node, parent, rest = stack[-1]
        for other in rest:
            if number[other] < 0:
                number[other] = lowest[other] = count
                count += 1
                children += node == 0
                stack.append((other, node, iter(neighbors[other])))
                break
            if other != parent and number[other] < lowest[node]:
                lowest[node] = number[other]
        else:
            stack.pop()
            if parent >= 0:
                lowest[parent] = min(lowest[parent], lowest[node])
                if parent > 0 and lowest[node] >= number[parent]:
                    found.add(parent)
    if children > 1:
        found.add(0)
    return found
