"""Paths between both ends of an explained link: those that samples hold, then those of the largest reward."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs

_STEPS, _RATED = 20_000, 500
"""Ways that are begun at most, in search of paths that nobody has sampled, and paths of them that are rated."""
_UNLIKELY = 1e-6
"""Probability that an edge counts as having at least, so that paths along edges that nobody took are ranked too."""


def ranked_paths(
    instances: Instances,
    i: int,
    subgraphs: Subgraphs,
    probability: Tensor,
    neighbor: Tensor,
    k: int,
    rate: Callable[[Subgraphs], Tensor] | None = None,
) -> list[tuple[tuple[int, ...], float]]:
    """Ranks paths without shortcuts between both ends of the link of instance ``i``.

    First come those that lie in sampled subgraphs, by the probability that one holds them; of equal ones the shorter,
    then that of more probable edges. If these are fewer than ``k``, others of at most that length follow, with
    probability 0: by their reward, or where that is not cheap by the product of the probabilities of their edges.

    Args:
        instances: Instances of links.
        i: Which of them.
        subgraphs: Its different sampled subgraphs, ``U`` of them.
        probability: Probability of each, shape ``[U]``.
        neighbor: Probability of each neighbour entry of all instances, shape ``[m]``.
        k: Number of paths that are wanted.
        rate: Returns the log-reward of subgraphs, where that is cheap.

    Returns:
        At most ``k`` pairs of a path, as flat positions from the first end to the second, and its probability.
    """
    assert instances.other_end is not None
    assert instances.joined is not None
    if not bool(instances.joined[i]):
        return []
    begin, end = int(instances.ptr[i]), int(instances.ptr[i + 1])
    first, last = int(instances.center[i]), int(instances.other_end[i])
    ptr = instances.neighbor_ptr[begin : end + 1].tolist()
    entries = slice(ptr[0], ptr[-1])
    node, value = instances.neighbor[entries].tolist(), neighbor[entries].clamp(0, 1).tolist()
    around = {
        begin + row: {node[e - ptr[0]]: value[e - ptr[0]] for e in range(ptr[row], ptr[row + 1])}
        for row in range(end - begin)
    }
    found: dict[tuple[int, ...], float] = {}
    for members, share in zip(subgraphs.members.tolist(), probability.tolist(), strict=True):
        inside = {m for m in members if m >= 0}
        for path in _paths_inside(around, inside, first, last):
            found[path] = min(1.0, found.get(path, 0.0) + share)

    def order(item: tuple[tuple[int, ...], float]) -> tuple[float, int, float, tuple[int, ...]]:
        path, share = item
        return -round(share, 12), len(path), _cost(around, path), path

    best = sorted(found.items(), key=order)[:k]
    if len(best) < k:
        longest = max((len(path) for path in found), default=int(instances.hops_to_other_end[first]) + 1)
        wanted = k - len(best)
        others = _search(around, first, last, longest, wanted if rate is None else max(wanted, _RATED), set(found))
        if rate is not None and others:
            rating = rate(Subgraphs.of_lists([i] * len(others), others, instances.device, longest))
            # Stable: of equal ones, those along more probable edges stay first.
            others = [others[row] for row in torch.argsort(-rating, stable=True).tolist()]
        best += [(path, 0.0) for path in others[:wanted]]
    return best


def _cost(around: dict[int, dict[int, float]], path: Sequence[int]) -> float:
    """Returns minus the log-probability of a path's edges, as if they were independent."""
    return sum(-math.log(max(around[one][other], _UNLIKELY)) for one, other in pairwise(path))


def _paths_inside(
    around: dict[int, dict[int, float]], inside: set[int], first: int, last: int
) -> list[tuple[int, ...]]:
    """Lists all paths from ``first`` to ``last`` inside a node set that have no shortcut among their own nodes."""
    found: list[tuple[int, ...]] = []
    stack: list[tuple[int, ...]] = [(first,)]
    while stack:
        path = stack.pop()
        for node in sorted(around[path[-1]].keys() & inside - set(path)):
            # A node that is joined to an earlier one would be a shortcut.
            if any(node in around[earlier] for earlier in path[:-1]):
                continue
            if node == last:
                found.append((*path, node))
            else:
                stack.append((*path, node))
    return found


def _search(
    around: dict[int, dict[int, float]], first: int, last: int, longest: int, k: int, known: set[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Finds the ``k`` paths of the least cost with at most ``longest`` nodes that are not known yet, best first."""
    left = _steps_to(around, last)
    found: list[tuple[int, ...]] = []
    queue: list[tuple[float, tuple[int, ...]]] = [(0.0, (first,))]
    for _ in range(_STEPS):
        if not queue or len(found) == k:
            break
        cost, path = heapq.heappop(queue)
        if path[-1] == last:
            if path not in known:
                found.append(path)
            continue
        for node, value in around[path[-1]].items():
            if node in path or len(path) + 1 + left.get(node, longest) > longest:
                continue
            if any(node in around[earlier] for earlier in path[:-1]):
                continue
            heapq.heappush(queue, (cost - math.log(max(value, _UNLIKELY)), (*path, node)))
    return found


def _steps_to(around: dict[int, dict[int, float]], last: int) -> dict[int, int]:
    """Counts the steps from every node that reaches ``last``."""
    steps, newest = {last: 0}, [last]
    while newest:
        fresh = []
        for one in newest:
            for other in around[one]:
                if other not in steps:
                    steps[other] = steps[one] + 1
                    fresh.append(other)
        newest = fresh
    return steps
