"""Floors: explainers that learn nothing and, but for one, never evaluate the GNN."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from gflowbench.suites.cases import Case
from gflowbench.suites.scoring import NodeExplanation
from gflowbench.suites.task import SuiteTask
from gflowexplainer.errors import ConfigError

_GROWTHS = 100
_STARTS = 16


def random_growth(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Grows connected subgraphs by random neighbours; a node scores the share of them that hold it."""
    rng = np.random.default_rng(seed)
    explanations = []
    for case in cases:
        counts = torch.zeros(case.num_nodes, dtype=torch.double)
        neighbors = case.neighbors()
        for _ in range(_GROWTHS):
            grown = grow_randomly(neighbors, case.center, max_nodes, rng)
            counts[grown] += 1
        explanations.append(NodeExplanation(counts / _GROWTHS, (tuple(sorted(grown)),)))
    return explanations


def distance(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores a node by minus its distance to the explained node; at graph level by minus its mean distance to all."""
    explanations = []
    for case in cases:
        neighbors = case.neighbors()
        starts = range(case.num_nodes) if case.center is None else [case.center]
        steps = torch.stack([_steps(neighbors, start) for start in starts])
        explanations.append(NodeExplanation(-steps.mean(dim=0)))
    return explanations


def breadth_first(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Takes the nodes nearest to the explained node, at graph level to random ones, and shows the first such set."""
    rng = np.random.default_rng(seed)
    explanations = []
    for case in cases:
        neighbors = case.neighbors()
        starts = rng.integers(0, case.num_nodes, _STARTS).tolist() if case.center is None else [case.center]
        scores, first = torch.zeros(case.num_nodes, dtype=torch.double), None
        for start in starts:
            steps = _steps(neighbors, start) + torch.from_numpy(0.5 * rng.random(case.num_nodes))
            nearest = torch.argsort(steps)[:max_nodes]
            scores[nearest] += torch.arange(max_nodes, 0, -1, dtype=torch.double)[: len(nearest)]
            first = tuple(sorted(nearest.tolist())) if first is None else first
        explanations.append(NodeExplanation(scores / len(starts), None if first is None else (first,)))
    return explanations


def degree(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores a node by its number of neighbours."""
    return [
        NodeExplanation(torch.tensor([len(nodes) for nodes in case.neighbors()], dtype=torch.double)) for case in cases
    ]


def rarity(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores a node by how rare its features are among the nodes of the task: minus the logarithm of their share."""
    features = torch.cat([graph.x for graph in task.graphs])
    kinds, counts = features.unique(dim=0, return_counts=True)
    number = {tuple(kind): count for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)}
    return [
        NodeExplanation(
            -torch.tensor([number[tuple(row)] / len(features) for row in case.x.tolist()], dtype=torch.double).log()
        )
        for case in cases
    ]


@torch.no_grad()
def class_probability(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores a node by the probability that the GNN gives the explained class at it; classes of nodes only."""
    if task.level != "node" or task.is_regression:
        raise ConfigError(f"'probability' needs classes of nodes, which '{task.name}' has not. Leave it out.")
    graph = task.graphs[0]
    probability = model(graph.x, graph.edge_index).double().softmax(dim=1)
    return [NodeExplanation(probability[case.nodes, case.target]) for case in cases]


def grow_randomly(neighbors: list[list[int]], start: int | None, size: int, rng: np.random.Generator) -> list[int]:
    """Returns at most ``size`` connected nodes, grown by random neighbours from ``start``, or from a random node."""
    first = int(rng.integers(len(neighbors))) if start is None else start
    chosen, frontier = [first], list(neighbors[first])
    seen = {first, *frontier}
    while frontier and len(chosen) < size:
        node = frontier.pop(int(rng.integers(len(frontier))))
        chosen.append(node)
        fresh = [other for other in neighbors[node] if other not in seen]
        frontier += fresh
        seen.update(fresh)
    return chosen


def _steps(neighbors: list[list[int]], start: int) -> Tensor:
    """Returns the steps from ``start`` to each node, shape ``[n]``; a node without a path counts as ``n`` away."""
    steps = [len(neighbors)] * len(neighbors)
    steps[start] = 0
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in neighbors[node]:
            if steps[other] > steps[node] + 1:
                steps[other] = steps[node] + 1
                queue.append(other)
    return torch.tensor(steps, dtype=torch.double)
