r"""Cases in which there is nothing to say: random weights, labels that are noise, a class that is an absence.

Whether an explanation holds is also measured from outside, the same way for every explainer: what is shown must be
better than random connected subgraphs of its size elsewhere in the graph. With :math:`p` the probability of the class
on the shown nodes and :math:`r_1 \dots r_m` that on random ones without any of them (but the explained node), it holds
if the class is still predicted and :math:`p` is above 95 of 100 of the :math:`r_i` by at least .1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites.cases import Case, make_cases, predict_cases
from gflowbench.suites.gnn_fitting import GRAPH_SCHEDULE, fit_gnn, fresh_gnn, split_score
from gflowbench.suites.gnns import SuiteGNN
from gflowbench.suites.logic_suite import make_logic_task
from gflowbench.suites.scoring import Part
from gflowexplainer.errors import one_of

NAMES = ("random-weights", "noise-labels", "absence-class", "real")
"""The last one is the other side: cases of the same kind that do have an explanation."""
_RANDOM_SETS = 50
_QUANTILE = 0.95
_MARGIN = 0.1
_SCHEDULES = {"noise-labels": replace(GRAPH_SCHEDULE, epochs=20)}


def make_null_task(name: str, seed: int, num_graphs: int | None = None) -> Benchmark:
    """Makes the graphs of a null case, or of its counterpart with an explanation.

    ``"random-weights"`` has the graphs of OPPOSED for a GNN that is never trained; ``"noise-labels"`` the same graphs
    with labels drawn at random; ``"absence-class"`` the class of ABSENCE that lacks the motif; ``"real"`` the other
    class of ABSENCE. The index of the task holds the test instances to explain; those of a null case have no parts.
    """
    one_of("task", name, NAMES)
    source = make_logic_task("absence" if name in ("absence-class", "real") else "opposed", seed, num_graphs)
    if name in ("absence-class", "real"):
        explained = source.instances([Combination.NONE] if name == "absence-class" else None)
        return replace(source, name=name, index=torch.tensor(explained, dtype=torch.long))
    truths = {i: TaskTruth(int(graph.num_nodes or 0), Combination.NONE) for i, graph in enumerate(source.graphs)}
    graphs = source.graphs
    if name == "noise-labels":
        labels = np.random.default_rng(seed).integers(0, 2, len(graphs))
        graphs = [_relabelled(graph, int(label)) for graph, label in zip(graphs, labels, strict=True)]
    return replace(source, name=name, truths=truths, graphs=graphs)


def fit_null_gnn(gnn: str, task: Benchmark, seed: int) -> tuple[SuiteGNN, float]:
    """Returns the GNN of a null case with its test accuracy, which is about .5 where nothing can be learned."""
    if task.name != "random-weights":
        return fit_gnn(gnn, task, seed, _SCHEDULES.get(task.name))
    model = fresh_gnn(gnn, task, seed).eval()
    return model, split_score(model, task)


def null_cases(model: nn.Module, task: Benchmark) -> list[Case]:
    """Returns the cases; where labels can be right, only those that the GNN gets right."""
    return make_cases(model, task, task.index.tolist(), correct=task.name in ("absence-class", "real"))


def better_than_random(model: nn.Module, cases: Sequence[Case], shown: Sequence[Sequence[Part]], seed: int) -> Tensor:
    """Says which explanations hold, measured against random connected subgraphs of their size elsewhere.

    Args:
        model: The explained GNN; a classifier.
        cases: ``I`` cases.
        shown: The parts that are shown of each. Random ones have as many parts, of the same sizes.
        seed: Seed of the random subgraphs.

    Returns:
        Booleans, shape ``[I]``.
    """
    rng = np.random.default_rng(seed)
    masks = []
    for case, parts in zip(cases, shown, strict=True):
        rows = [case.mask([node for part in parts for node in part])]
        elsewhere = (~rows[0]).nonzero().view(-1).tolist()
        if case.center is not None:
            elsewhere = sorted({*elsewhere, case.center})
        if elsewhere:
            rows += [case.mask(nodes) for nodes in _draws(case, elsewhere, parts, rng)]
        masks.append(torch.stack(rows))
    verdicts = []
    for case, found in zip(cases, predict_cases(model, cases, masks), strict=True):
        # Whoever shows the whole graph has not said anything.
        bound = float(found[1:].quantile(_QUANTILE)) + _MARGIN if len(found) > 1 else math.inf
        verdicts.append(case.target is not None and bool(found[0] > 0.5) and bool(found[0] >= bound))
    return torch.tensor(verdicts)


def _draws(case: Case, nodes: Sequence[int], parts: Sequence[Part], rng: np.random.Generator) -> Iterator[list[int]]:
    """Yields random sets among ``nodes``, each of connected sets of the sizes of ``parts``."""
    place = {node: number for number, node in enumerate(nodes)}
    neighbors = case.neighbors()
    near = [[place[other] for other in neighbors[node] if other in place] for node in nodes]
    start = None if case.center is None else place[case.center]
    for _ in range(_RANDOM_SETS):
        yield [nodes[i] for part in parts for i in grow_randomly(near, start, len(part), rng)]


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


def _relabelled(graph: Data, label: int) -> Data:
    copy = graph.clone("x")
    copy.y = torch.tensor([label])
    return copy
