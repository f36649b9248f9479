"""Stability to what does not matter: the same graph without a few edges far from the explanation, explained again.

A perturbation counts only if the model's class stays (of a regression: if the value moves by no more than a share of
the target's scale); otherwise the explanation may rightly change (GraphXAI's condition on perturbations).
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.explainers.interface import Explainer, Subject
from gflowbench.metrics.fidelity import losses
from gflowbench.metrics.selection import hard_explanation
from gflowexplainer.errors import ConfigError
from gflowexplainer.ops.hashed_random import uniform

SAME_VALUE = 0.1
"""How far a value may move, in units of the target's scale, to count as the same."""


def perturbed_graphs(graphs: list[Data], explained: list[Tensor], share: float, seed: int) -> list[Data]:
    """Removes undirected edges that do not lie inside the explanation, each with probability ``share``.

    Args:
        graphs: Graphs of a graph task.
        explained: Nodes of the explanation of each, as masks ``[N]``; edges between two of them stay.
        share: Chance that an edge is removed.
        seed: Names the draws.
    """
    changed = []
    for number, (graph, inside) in enumerate(zip(graphs, explained, strict=True)):
        ends = graph.edge_index.sort(dim=0).values
        draw = uniform(seed, number, ends[0], ends[1])
        kept = inside[graph.edge_index].all(dim=0) | (draw >= share) | (ends[0] == ends[1])
        changed.append(graph.edge_subgraph(kept))
    return changed


def perturbation_stability(
    explainer: Explainer,
    subject: Subject,
    benchmark: Benchmark,
    *,
    top_k: int,
    share: float = 0.1,
    seed: int = 0,
) -> tuple[float, float]:
    """Explains instances of a graph task, and again after edges outside of the explanations were removed.

    Args:
        explainer: A fitted explainer.
        subject: Model and instances.
        benchmark: The graphs that they come from.
        top_k: Nodes of a hard explanation.
        share: Chance that an edge outside is removed.
        seed: Names the draws, and is the explainer's seed both times.

    Returns:
        The mean Jaccard index of both explanations over instances whose prediction stays (``nan`` if none does), and
        the share of those instances.
    """
    if subject.instances.level != "graph":
        raise ConfigError("Edges are perturbed at graph level: a node's computation graph would change with them.")
    instances = subject.instances
    first = hard_explanation(instances, explainer.explain(subject, seed), top_k)
    sizes = instances.node_counts.tolist()
    graphs = [benchmark.graphs[i] for i in subject.index.tolist()]
    changed = perturbed_graphs(graphs, list(first.cpu().split(sizes)), share, seed)
    other = replace(benchmark, graphs=changed, index=torch.arange(len(changed)))
    again = Subject.of(
        subject.model,
        other,
        max_nodes=subject.max_nodes,
        mode=subject.predictor.mode,
        return_type=subject.predictor.return_type,
        num_hops=subject.predictor.num_hops,
    )
    same = _same_prediction(subject, again)
    if not bool(same.any()):
        return math.nan, 0.0
    second = hard_explanation(again.instances, explainer.explain(again, seed), top_k)
    indices = [
        float((a & b).sum()) / max(int((a | b).sum()), 1)
        for a, b in zip(first.split(sizes), second.split(sizes), strict=True)
    ]
    return float(torch.tensor(indices)[same.cpu()].mean()), float(same.double().mean())


def _same_prediction(subject: Subject, again: Subject) -> Tensor:
    """Tells which instances the model predicts alike, shape ``[I]``."""
    if subject.target.label is None or again.target.label is None:
        return losses(subject, again.target.prediction.double()) <= SAME_VALUE
    return subject.target.label == again.target.label
