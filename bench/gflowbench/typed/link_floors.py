"""Explainers of links that know nothing of the model: what they reach needs no explainer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import networkx
import numpy as np

from gflowbench.typed.link_task import LinkScores, LinkTask, TypedEdge
from gflowbench.typed.link_ways import edges_along, ends_of_links, flat_graph, reach, ways_between


def random_edges(task: LinkTask, seed: int) -> LinkScores:
    """Scores the edges around each link by chance."""
    draw = np.random.default_rng(seed)
    return [dict(zip(around, draw.random(len(around)).tolist(), strict=True)) for around in task.around]


def edges_near_ends(task: LinkTask, seed: int) -> LinkScores:
    """Scores the edges around each link by how few steps they are from both ends together, in either direction."""
    graph = flat_graph(task)
    scores = []
    for (one, other), around in zip(ends_of_links(task), task.around, strict=True):
        near, far = (networkx.single_source_shortest_path_length(graph, end) for end in (one, other))
        most = graph.number_of_nodes()
        scores.append(
            {
                edge: 1 / (1 + sum(min(steps.get(end, most) for end in task.ends_of(edge)) for steps in (near, far)))
                for edge in around
            }
        )
    return scores


def shortest_ways(task: LinkTask, seed: int) -> LinkScores:
    """No explainer at all: edges on a shortest way between the ends, in either direction; ties by chance."""
    graph = flat_graph(task)
    scores = []
    for one, other in ends_of_links(task):
        near, far = (networkx.single_source_shortest_path_length(graph, end) for end in (one, other))
        shortest = near.get(other, 10**6)
        scores.append(
            {
                edge: 1.0
                for u, v, edges in graph.edges(data="edges")
                for edge in edges
                if min(near.get(u, 10**6) + far.get(v, 10**6), near.get(v, 10**6) + far.get(u, 10**6)) + 1 == shortest
            }
        )
    return scores


def rare_neighbours(task: LinkTask, seed: int) -> LinkScores:
    r"""Scores the edges around each link by how few neighbours their ends have: :math:`1 / \sqrt{d_u d_v}`."""
    degree = flat_graph(task).degree
    return [
        {edge: 1 / math.sqrt(math.prod(degree[end] for end in task.ends_of(edge))) for edge in around}
        for around in task.around
    ]


def rare_ways(task: LinkTask, seed: int) -> LinkScores:
    r"""Scores an edge by the sum of the ways between the ends that run along it, rare ones more.

    A way counts :math:`\prod_v 1 / d_v` over its inner nodes: resource allocation (Zhou et al., 2009), from common
    neighbours to longer ways. Ways have at most twice as many steps as the model reaches from one end.
    """
    return _by_ways(task, sum)


def rarest_way(task: LinkTask, seed: int) -> LinkScores:
    """Scores an edge by the rarest way between the ends that runs along it, counted as in :func:`rare_ways`."""
    return _by_ways(task, max)


def _by_ways(task: LinkTask, join: Callable[[list[float]], float]) -> LinkScores:
    degree, most_steps = flat_graph(task).degree, 2 * reach(task)
    scores = []
    for (one, other), around in zip(ends_of_links(task), task.around, strict=True):
        graph = flat_graph(task, around)
        shares: dict[TypedEdge, list[float]] = defaultdict(list)
        for way in ways_between(graph, one, other, most_steps):
            share = 1 / math.prod(degree[node] for node in way[1:-1])
            for edge in edges_along(task, graph, way):
                shares[edge].append(share)
        scores.append({edge: join(found) for edge, found in shares.items()})
    return scores
