r"""Cases in which there is nothing to say: random weights, labels that are noise, a class that is an absence.

Whether an explanation holds is also measured from outside, the same way for every explainer: what is shown must be
better than random connected subgraphs of its size elsewhere in the graph. With :math:`p` the probability of the class
on the shown nodes and :math:`r_1 \dots r_m` that on random ones without any of them (but the explained node), it holds
if the class is still predicted and :math:`p` is above 95 of 100 of the :math:`r_i` by at least .1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowbench.suites.cases import Case, make_cases, predict_kept
from gflowbench.suites.gnn_fitting import Schedule, fit_gnn, split_score
from gflowbench.suites.gnns import Shape, SuiteGNN, build_gnn
from gflowbench.suites.logic_suite import make_logic_task
from gflowbench.suites.scoring import Part
from gflowbench.suites.task import Combination, SuiteTask, TaskTruth
from gflowexplainer.errors import one_of

NAMES = ("random-weights", "noise-labels", "absence-class", "real")
"""The last one is the other side: cases of the same kind that do have an explanation."""
_RANDOM_SETS = 50
_QUANTILE = 0.95
_MARGIN = 0.1
_SCHEDULES = {"noise-labels": Schedule(epochs=20)}


@dataclass(frozen=True, eq=False)
class NullTask:
    """A task, a GNN and what is explained.

    Attributes:
        name: One of :data:`NAMES`.
        task: The graphs; no instance of a null case has parts.
        null: Whether there is nothing to explain.
        instances: Test instances to explain.
    """

    name: str
    task: SuiteTask
    null: bool
    instances: list[int]


def make_null_task(name: str, seed: int, num_graphs: int | None = None) -> NullTask:
    """Makes the graphs of a null case, or of its counterpart with an explanation.

    ``"random-weights"`` has the graphs of OPPOSED for a GNN that is never trained; ``"noise-labels"`` the same graphs
    with labels drawn at random; ``"absence-class"`` the class of ABSENCE that lacks the motif; ``"real"`` the other
    class of ABSENCE.
    """
    one_of("task", name, NAMES)
    source = make_logic_task("absence" if name in ("absence-class", "real") else "opposed", seed, num_graphs)
    if name in ("absence-class", "real"):
        wanted = [Combination.NONE] if name == "absence-class" else None
        task = replace(source, name=name)
        return NullTask(name, task, name == "absence-class", task.instances(wanted))
    truths = {i: TaskTruth(int(graph.num_nodes or 0), Combination.NONE) for i, graph in enumerate(source.graphs)}
    graphs = source.graphs
    if name == "noise-labels":
        labels = np.random.default_rng(seed).integers(0, 2, len(graphs))
        graphs = [_relabelled(graph, int(label)) for graph, label in zip(graphs, labels, strict=True)]
    task = replace(source, name=name, truths=truths, graphs=graphs)
    return NullTask(name, task, True, task.instances([Combination.NONE]))


def fit_null_gnn(gnn: str, null: NullTask, seed: int) -> tuple[SuiteGNN, float]:
    """Returns the GNN of a null case with its test accuracy, which is about .5 where nothing can be learned."""
    if null.name != "random-weights":
        return fit_gnn(gnn, null.task, seed, _SCHEDULES.get(null.name))
    task = null.task
    model = build_gnn(
        Shape(
            gnn=gnn,
            level=task.level,
            in_channels=task.graphs[0].num_features,
            out_channels=task.num_classes,
            hidden_channels=task.hidden_channels,
            num_layers=task.num_layers,
        ),
        seed,
    ).eval()
    return model, split_score(model, task)


def null_cases(model: nn.Module, null: NullTask) -> list[Case]:
    """Returns the cases; where labels can be right, only those that the GNN gets right."""
    return make_cases(model, null.task, null.instances, correct=null.name in ("absence-class", "real"))


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
    for case, found in zip(cases, predict_kept(model, cases, masks), strict=True):
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
