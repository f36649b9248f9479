"""The CHAIN task on nodes: what counts are two colours in a row, and neither of them at the explained node.

One graph of many components, random trees with a few more edges, whose nodes have any colours. Nothing is planted, so a
colour alone tells little, and the same two colours lie next to each other elsewhere.
"""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.datasets.splits import cut_in_order
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites.halves import half_of
from gflowbench.suites.pieces import COLOURS

COLOURS_OF = {"development": (1, 2), "judging": (3, 0)}
"""For each half: the colour next to the explained node, and the one behind it."""
_SIZES = (10, 25)
_MORE_EDGES = 0.25


def chain(seed: int, num_graphs: int) -> Benchmark:
    """Class 1: a neighbour of the first colour that has one of the second. The truth is each such chain.

    Args:
        seed: Seed of everything random; its half chooses the colours.
        num_graphs: Components of the graph; each lies in one split.
    """
    rng = np.random.default_rng(seed)
    size = rng.integers(*_SIZES, num_graphs)
    begin = np.concatenate([[0], size.cumsum()])
    pairs = [pair + begin[number] for number in range(num_graphs) for pair in _component(int(size[number]), rng)]
    colour = rng.integers(COLOURS, size=int(begin[-1]))
    neighbours: list[set[int]] = [set() for _ in colour]
    for one, other in pairs:
        neighbours[one].add(int(other))
        neighbours[other].add(int(one))
    found = [_chains(node, neighbours, colour, COLOURS_OF[half_of(seed)]) for node in range(len(colour))]
    edges = torch.from_numpy(np.array(pairs).T)
    graph = Data(
        x=torch.nn.functional.one_hot(torch.from_numpy(colour), COLOURS).float(),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        y=torch.tensor([int(bool(chains)) for chains in found]),
    )
    truths = {
        node: TaskTruth(len(colour), Combination.ANY if chains else Combination.NONE, chains)
        for node, chains in enumerate(found)
    }
    members = {
        key: torch.cat([torch.arange(begin[i], begin[i + 1]) for i in ids.tolist()])
        for key, ids in cut_in_order(num_graphs).items()
    }
    return Benchmark(
        name="chain",
        task="node",
        graphs=[graph],
        index=members["test"],
        num_classes=2,
        source="generated",
        provenance=f"generated, seed {seed}, {num_graphs} components",
        splits=members,
        truths=truths,
        num_layers=3,
    )


def _component(size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Returns the edges of a random tree and a few more, each once."""
    pairs = {(int(rng.integers(node)), node) for node in range(1, size)}
    for one, other in rng.integers(size, size=(int(_MORE_EDGES * size), 2)).tolist():
        if one != other:
            pairs.add((min(one, other), max(one, other)))
    return [np.array(pair) for pair in sorted(pairs)]


def _chains(
    node: int, neighbours: list[set[int]], colour: np.ndarray, wanted: tuple[int, int]
) -> tuple[tuple[int, ...], ...]:
    """Returns the node sets of all chains from a node, which may lead back to it."""
    near, far = wanted
    found = {
        tuple(sorted({node, first, second}))
        for first in neighbours[node]
        if colour[first] == near
        for second in neighbours[first]
        if colour[second] == far
    }
    return tuple(sorted(found))
