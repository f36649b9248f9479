"""Which nodes of a case are drawn, and when each of them is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from gflowexplainer.drawing.case import Case

MOST_NODES, BUDGET, FEWEST_NODES = 300, 12_000, 60
"""Nodes drawn of one case, of all cases together, and of one case however many there are."""
NEAR_ONE, NEAR_ALL, SMALL_GRAPH = 7, 28, 60
"""Direct neighbours shown of one node of the explanation and of all of them, and nodes of a graph shown as a whole."""


def node_limit(num_cases: int) -> int:
    """Returns how many nodes of each case are drawn, so that a report of many cases can still be mailed."""
    return int(np.clip(BUDGET // max(num_cases, 1), FEWEST_NODES, MOST_NODES))


def main_nodes(explanation: Any) -> list[int]:
    """Returns the nodes that are drawn as the explanation: those of its parts, or of the first subgraph."""
    parts = explanation.known_parts
    return list(explanation.subgraphs[0].nodes if parts is None else parts.nodes)


def explained_nodes(explanation: Any) -> list[int] | None:
    """Returns the explained node, or both ends of the explained link; ``None`` where a graph is explained."""
    if explanation.explained_link is not None:
        return list(explanation.explained_link)
    return None if explanation.explained_node is None else [explanation.explained_node]


def adjacency(explanation: Any) -> csr_array:
    """Returns the graph without directions and loops, shape ``[N, N]``."""
    source, target = explanation.edge_index.cpu().numpy()
    number = len(explanation.node_probability())
    kept = source != target
    ends = np.concatenate([source[kept], target[kept]]), np.concatenate([target[kept], source[kept]])
    return coo_array((np.ones(ends[0].size), ends), shape=(number, number)).tocsr()


def chosen_nodes(case: Case, graph: csr_array, limit: int) -> tuple[np.ndarray, int]:
    """Returns the nodes that are drawn, shape ``[n]``, and how far they lie from the explained one at most.

    The most probable come first, then the nearest. Parts, and the first subgraph of each compared explanation, are
    always among them. At node level nothing is taken that lies farther away than the explanation reaches, two steps at
    least.
    """
    explanation = case.explanation
    values = explanation.node_probability()
    start = explained_nodes(explanation)
    compared = [explanation, *case.beside.values()]
    first = np.unique(np.concatenate([[*main_nodes(other), *other.subgraphs[0].nodes] for other in compared]))
    seeds = np.flatnonzero(values > 0) if start is None else np.array(start)
    if seeds.size == 0:
        seeds = first
    hops = dijkstra(graph, directed=False, indices=seeds, unweighted=True, min_only=True)
    inside, reach = values > 0, 0
    if start is not None:
        reach = max(int(hops[inside & np.isfinite(hops)].max(initial=0)), 2)
        inside |= hops <= reach
    else:
        inside[:] = True
    inside[first] = True
    last = np.ones(values.size)
    last[first] = 0
    if start is not None:
        last[start] = -1
    order = np.lexsort((hops, -values, last))
    return order[inside[order]][:limit], reach


def node_levels(
    explanation: Any, slot: np.ndarray, ends: np.ndarray, values: np.ndarray, *, whole: bool, truth: np.ndarray | None
) -> np.ndarray:
    """Returns when each node is shown, shape ``[n]``: the explanation, its direct neighbours, then the rest.

    Of a hub only the most probable neighbours come with it. Small graphs that are explained as a whole, molecules and
    sentences are shown as a whole, and the ground truth always.
    """
    level = np.full(values.size, 2)
    explained = explained_nodes(explanation)
    core = slot[[*main_nodes(explanation), *(explained or [])]]
    core = core[core >= 0]
    if whole or (explained is None and values.size <= SMALL_GRAPH):
        level[:] = 1
    if truth is not None:
        level[ends[truth]] = 1
    level[core] = 0
    rank = np.argsort(-values, kind="stable")
    place = np.empty_like(rank)
    place[rank] = np.arange(rank.size)
    near: list[int] = []
    for node in np.unique(core):
        joined = np.concatenate([ends[ends[:, 0] == node, 1], ends[ends[:, 1] == node, 0]])
        outside = np.unique(joined[level[joined] == 2])
        near += outside[np.argsort(place[outside])][:NEAR_ONE].tolist()
    level[sorted(set(near), key=lambda node: place[node])[:NEAR_ALL]] = 1
    return level


def best_ends(score: np.ndarray, ends: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Returns the ends of an explainer's best edges, as many as lie inside the first subgraph, positions ``[k]``."""
    inside = np.isin(ends, first).all(axis=1)
    order = np.argsort(-score, kind="stable")[: max(int(inside.sum()), 1)]
    return np.unique(ends[order[score[order] > 0]])
