"""Ways between the ends of a link, of whatever types and directions their edges are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import networkx
import torch
from torch import Tensor

from gflowbench.typed.link_task import RELATION, LinkTask, TypedEdge


def flat_graph(task: LinkTask, edges: Iterable[TypedEdge] | None = None) -> networkx.Graph:
    """Returns the graph with nodes (type, id) and, at each pair of neighbours, all edges between them.

    Args:
        task: The links and their graph.
        edges: Some edges of the graph; all if not given.
    """
    if edges is None:
        edges = [(key, place) for key, index in task.edge_index.items() for place in range(index.size(1))]
    graph = networkx.Graph()
    for edge in edges:
        one, other = task.ends_of(edge)
        if not graph.has_edge(one, other):
            graph.add_edge(one, other, edges=[])
        graph.edges[one, other]["edges"].append(edge)
    return graph


def ends_of_links(task: LinkTask) -> list[tuple[Hashable, Hashable]]:
    """Returns both ends of each link to explain, by type and id."""
    source, target = task.end_types
    return [((source, one), (target, other)) for one, other in task.test.t().tolist()]


def edges_along(task: LinkTask, graph: networkx.Graph, path: Sequence[Any]) -> list[TypedEdge]:
    """Returns the edges of a path, those that run along it where there are any."""
    found = []
    for u, v in pairwise(path):
        edges = graph.edges[u, v]["edges"]
        ahead = [e for e in edges if task.ends_of(e) == (u, v)]
        found.append((ahead or edges)[0])
    return found


def ways_between(
    graph: networkx.Graph, one: Hashable, other: Hashable, most_steps: int, most_ways: int = 10_000
) -> list[list[Hashable]]:
    """Lists the ways between two nodes that visit no node twice, the shortest first.

    Args:
        graph: The graph.
        one: Where the ways begin.
        other: Where they end.
        most_steps: Steps of a way at most.
        most_ways: Ways at most; longer ones are left out first.

    Returns:
        The nodes of each way.
    """
    if one not in graph or other not in graph:
        return []
    left = networkx.single_source_shortest_path_length(graph, other, cutoff=most_steps)
    found: list[list[Hashable]] = []
    begun = [[one]]
    for steps in range(1, most_steps + 1):
        longer = [
            [*way, node]
            for way in begun
            for node in graph[way[-1]]
            if node not in way and left.get(node, most_steps) <= most_steps - steps
        ]
        found += [way for way in longer if way[-1] == other]
        if len(found) >= most_ways:
            break
        begun = [way for way in longer if way[-1] != other]
    return found[:most_ways]


def reach(task: LinkTask) -> int:
    """Returns how many steps against the edges the farthest node that a link depends on is from the nearer end."""
    farthest = 0
    for (one, other), around in zip(ends_of_links(task), task.around, strict=True):
        backwards = networkx.DiGraph([task.ends_of(edge)[::-1] for edge in around])
        backwards.add_nodes_from([one, other])
        farthest = max(farthest, *networkx.multi_source_dijkstra_path_length(backwards, {one, other}).values())
    return farthest


def edges_around(task: LinkTask, link: Tensor, num_hops: int) -> list[TypedEdge]:
    """Lists the edges between nodes within some hops, against the edges, of either end of a link ``[2]``."""
    features = {RELATION[0]: task.graph.x} if task.is_plain else task.graph.x_dict
    inside = {kind: torch.zeros(x.size(0), dtype=torch.bool) for kind, x in features.items()}
    for kind, end in zip(task.end_types, link, strict=True):
        inside[kind][end] = True
    for _ in range(num_hops):
        near = {kind: mask.clone() for kind, mask in inside.items()}
        for (source, _, target), (one, other) in task.edge_index.items():
            near[source][one[inside[target][other]]] = True
        inside = near
    return [
        (key, place)
        for key, (one, other) in task.edge_index.items()
        for place in torch.nonzero(inside[key[0]][one] & inside[key[2]][other]).flatten().tolist()
    ]
