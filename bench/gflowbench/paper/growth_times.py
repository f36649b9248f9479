"""Times Theorem 1 and searches from scratch, step by step, while random graphs grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from gflowbench.paper.plain_cut_vertices import GrowingCutVertices, tarjan
from gflowexplainer.flow.cut_vertices import add_node, empty_cut_matrix

NODES, BATCH = 64, 1024
BATCHED, SINGLE, PLAIN = f"Theorem 1, batch of {BATCH}", "Theorem 1, batch of 1", "Theorem 1, plain Python"
TARJAN = "Tarjan, plain Python"
_Begin = Callable[[], Callable[[int], object]]


def grown_graph(nodes: int, density: float, random: np.random.Generator) -> np.ndarray:
    """Draws a connected graph and an order to grow it in; gives its adjacency in that order, ``[nodes, nodes]``."""
    matrix = np.triu(random.random((nodes, nodes)) < density, 1)
    for node in range(1, nodes):
        matrix[random.integers(node), node] = True
    matrix = matrix | matrix.T
    order = [int(random.integers(nodes))]
    while len(order) < nodes:
        frontier = np.flatnonzero(matrix[order].any(axis=0) & ~np.isin(np.arange(nodes), order))
        order.append(int(random.choice(frontier)))
    return matrix[np.ix_(order, order)]


def time_growth(density: float, graphs: int, rounds: int) -> dict[str, Any]:
    """Times every method at every step of random growths, on one thread.

    Returns:
        ``"microseconds"``: for each method the time of one step of one graph, for each size after the step;
        ``"states"``, ``"differences"`` and ``"elsewhere"``: states compared with Tarjan's search, those whose cut
        vertices differ, and those in which a vertex that the new node is not joined to becomes a cut vertex.
    """
    random = np.random.default_rng(0)
    batch = np.stack([grown_graph(NODES, density, random) for _ in range(BATCH)])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        methods = _methods(batch, graphs)
        best = {name: [np.inf] * (NODES - 2) for name in methods}
        for _ in range(rounds):
            for name, (share, begin) in methods.items():
                step = begin()
                for size in range(2, NODES):
                    began = time.thread_time()
                    step(size)
                    best[name][size - 2] = min(best[name][size - 2], (time.thread_time() - began) / share)
    finally:
        torch.set_num_threads(threads)
    return {"microseconds": {name: [1e6 * t for t in times] for name, times in best.items()}, **_check(batch)}


def _methods(batch: np.ndarray, graphs: int) -> dict[str, tuple[int, _Begin]]:
    """Prepares the methods: of how many graphs each does a step at once, and what begins a growth anew.

    A step takes the graphs from ``size`` to ``size + 1`` nodes. Searches get every graph built beforehand.
    """
    few = batch[:graphs]
    joined = [[np.flatnonzero(row[:node]).tolist() for node, row in enumerate(matrix)] for matrix in few]

    def plain() -> Callable[[int], object]:
        growing = [GrowingCutVertices() for _ in few]
        for one, connections in zip(growing, joined, strict=True):
            one.add(connections[0])
            one.add(connections[1])

        def step(size: int) -> None:
            for one, connections in zip(growing, joined, strict=True):
                one.add(connections[size])

        return step

    searched = [[_neighbors(matrix, size) for matrix in few] for size in range(NODES + 1)]
    return {
        BATCHED: (BATCH, partial(_theorem, [torch.from_numpy(batch)])),
        SINGLE: (graphs, partial(_theorem, list(torch.from_numpy(few).split(1)))),
        PLAIN: (graphs, plain),
        TARJAN: (graphs, lambda: lambda size: [tarjan(graph) for graph in searched[size + 1]]),
    }


def _theorem(batches: Sequence[torch.Tensor]) -> Callable[[int], object]:
    """Begins growths ``[B, K, K]``, one call of :func:`add_node` for each batch and step."""
    before = torch.arange(NODES)
    states = [empty_cut_matrix(len(batch), NODES) for batch in batches]
    joined = [[batch[:, size] & (before < size) for size in range(NODES)] for batch in batches]
    sizes = [[torch.full((len(batch),), size) for size in range(NODES)] for batch in batches]

    def step(size: int) -> None:
        for state, connection, count in zip(states, joined, sizes, strict=True):
            add_node(*state, connection[size], count[size])

    return step


def _neighbors(matrix: np.ndarray, size: int) -> list[list[int]]:
    return [np.flatnonzero(row[:size]).tolist() for row in matrix[:size]]


def _check(batch: np.ndarray) -> dict[str, int]:
    """Compares the engine's cut vertices at every step of every growth with Tarjan's search."""
    cut, is_cut = empty_cut_matrix(len(batch), NODES)
    adjacent = torch.from_numpy(batch)
    counts = {"states": 0, "cut_vertices": 0, "differences": 0, "elsewhere": 0}
    for size in range(NODES):
        joined = adjacent[:, size] & (torch.arange(NODES) < size)
        previous = is_cut.clone()
        add_node(cut, is_cut, joined, torch.full((len(batch),), size))
        expected = np.zeros((len(batch), NODES), dtype=bool)
        for number, matrix in enumerate(batch):
            expected[number, list(tarjan(_neighbors(matrix, size + 1)))] = True
        counts["states"] += len(batch)
        counts["cut_vertices"] += int(expected.sum())
        counts["differences"] += int((is_cut.numpy() != expected).any(axis=1).sum())
        counts["elsewhere"] += int((is_cut & ~previous & ~joined).any(dim=1).sum())
    return counts
