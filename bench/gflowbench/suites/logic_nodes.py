"""Logic tasks on nodes: what counts lies up to two steps from the explained node, not at it.

One graph of many components. Each is a tree with small rings attached: the motif, all of whose nodes have one colour,
and decoys of other colours. Only base nodes are classified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import networkx
import numpy as np
import torch
from torch_geometric.data import Batch, Data

from gflowbench.datasets import Benchmark
from gflowbench.datasets.motifs import Motif, cycle
from gflowbench.datasets.splits import cut_in_order
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites.halves import half_of
from gflowbench.suites.pieces import COLOURS, Assembly, coloured, renamed

REACH = 2
"""Steps within which a motif counts."""
VALUES = (1.0, -1.0)
"""What a ring of each of the two colours adds."""
Labelled = tuple[torch.Tensor, dict[int, TaskTruth]]


def distance(seed: int, num_graphs: int) -> Benchmark:
    """Class 1: a motif within two steps. The truth is each such motif with the nearest way to it."""
    return _node_task("distance", seed, num_graphs, _near_motif, "multiclass_classification")


def node_sum(seed: int, num_graphs: int) -> Benchmark:
    """A value: rings of the first colour within two steps count +1, rings of the second colour -1."""
    return _node_task("sum-node", seed, num_graphs, _near_values, "regression")


def rings_of(seed: int) -> tuple[Motif, Motif, tuple[Motif, ...]]:
    """Returns the two rings that count and the decoys of the half that ``seed`` belongs to."""
    size, shift = (3, 0) if half_of(seed) == "development" else (4, 2)
    rings = [coloured(cycle(size), [(colour + shift) % COLOURS] * size) for colour in range(COLOURS)]
    return rings[0], rings[1], tuple(rings[2:])


def _near_motif(tree: Assembly, planted: list[tuple[tuple[int, ...], int]], new: np.ndarray) -> Labelled:
    """Labels the base nodes of one component; ``planted`` holds nodes and kind (0, 1: motif; -1: decoy)."""
    motifs = [nodes for nodes, kind in planted if kind == 0]
    labels = torch.zeros(len(new), dtype=torch.long)
    truths = {}
    ways = _ways(tree)
    for node in range(tree.num_base_nodes):
        parts = [_with_way(ways[node], motif) for motif in motifs]
        near = [renamed(part, new) for part, steps in parts if steps <= REACH]
        labels[int(new[node])] = int(bool(near))
        how = Combination.ANY if near else Combination.NONE
        truths[int(new[node])] = TaskTruth(len(new), how, tuple(near))
    return labels, truths


def _near_values(tree: Assembly, planted: list[tuple[tuple[int, ...], int]], new: np.ndarray) -> Labelled:
    """Sums what is near each base node of one component, and spreads it over the nodes of the rings."""
    values = torch.zeros(len(new))
    truths = {}
    ways = _ways(tree)
    for node in range(tree.num_base_nodes):
        contributions: dict[int, float] = {}
        parts = []
        for ring, kind in planted:
            if kind >= 0 and _with_way(ways[node], ring)[1] <= REACH:
                parts.append(renamed(ring, new))
                contributions |= dict.fromkeys(parts[-1], VALUES[kind] / len(ring))
        values[int(new[node])] = sum(contributions.values())
        if parts:
            truths[int(new[node])] = TaskTruth(len(new), Combination.CONTRIBUTIONS, tuple(parts), contributions)
    return values, truths


def _node_task(name: str, seed: int, num_graphs: int, label: Callable[..., Labelled], mode: str) -> Benchmark:
    """Makes the components and joins them to one graph; each component lies in one split."""
    rng = np.random.default_rng(seed)
    first, second, decoys = rings_of(seed)
    graphs: list[Data] = []
    truths: dict[int, TaskTruth] = {}
    members: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    splits = {int(i): key for key, ids in cut_in_order(num_graphs).items() for i in ids}
    begin = 0
    for number in range(num_graphs):
        tree = Assembly(int(rng.integers(8, 16)), rng)
        planted = []
        for _ in range(int(rng.integers(2, 4))):
            kind = int(rng.choice([0, 1, -1], p=[0.4, 0.3, 0.3]))
            piece = decoys[int(rng.integers(len(decoys)))] if kind < 0 else (first, second)[kind]
            planted.append((tree.attach(piece), kind))
        graph, new = tree.to_data(0)
        graph.y, found = label(tree, planted, new)
        graphs.append(graph)
        members[splits[number]] += (begin + np.sort(new[: tree.num_base_nodes])).tolist()
        for node, truth in found.items():
            truths[begin + node] = _moved(truth, begin)
        begin += len(new)
    whole = Batch.from_data_list(graphs)
    union = Data(x=whole.x, edge_index=whole.edge_index, y=whole.y)
    parts = {key: torch.tensor(ids, dtype=torch.long) for key, ids in members.items()}
    return Benchmark(
        name=name,
        task="node",
        mode=mode,
        graphs=[union],
        truths={node: replace(truth, num_nodes=begin) for node, truth in truths.items()},
        splits=parts,
        index=parts["test"],
        source="generated",
        num_classes=1 if mode == "regression" else 2,
        num_layers=4,
        provenance=f"generated, seed {seed}, {num_graphs} components",
    )


def _ways(tree: Assembly) -> list[dict[int, list[int]]]:
    """Returns a shortest path from every base node to every node."""
    graph = networkx.Graph(tree.edges)
    return [networkx.single_source_shortest_path(graph, node) for node in range(tree.num_base_nodes)]


def _with_way(ways: dict[int, list[int]], ring: tuple[int, ...]) -> tuple[set[int], int]:
    """Returns the ring with the way to its nearest node, and the number of steps to it."""
    nearest = min(ring, key=lambda node: (len(ways[node]), node))
    return {*ring, *ways[nearest]}, len(ways[nearest]) - 1


def _moved(truth: TaskTruth, begin: int) -> TaskTruth:
    """Returns the truth of a component whose first node has the id ``begin``."""
    values = truth.contributions
    return TaskTruth(
        truth.num_nodes + begin,
        truth.combination,
        tuple(tuple(begin + node for node in part) for part in truth.parts),
        None if values is None else {begin + node: value for node, value in values.items()},
    )
