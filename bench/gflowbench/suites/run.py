"""The tasks of the suites by name, each with the GNN that is trained on it and the predictions to explain."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from gflowbench.datasets import Benchmark
from gflowbench.explainers.interface import Explainer, Scores, Subject
from gflowbench.suites import citation, compounds, logic_suite, molecules, null_cases, published
from gflowbench.suites.cases import Case, make_cases
from gflowbench.suites.digests import task_digest
from gflowbench.suites.explaining import explanations_of
from gflowbench.suites.gnn_fitting import LEARNED, fit_gnn
from gflowbench.suites.gnns import GNNS, load_gnn, save_gnn
from gflowbench.suites.scoring import (
    TOP,
    NodeExplanation,
    connected_top,
    node_sets,
    score_cases,
    shown_parts,
    summarize,
)
from gflowexplainer.storage.files import slug

TASKS = {
    "logic": logic_suite.NAMES,
    "molecules": molecules.NAMES,
    "compounds": compounds.NAMES,
    "real": ("cora",),
    "null": null_cases.NAMES,
    "published": published.NAMES,
}
GNNS_OF: dict[str, tuple[str, ...]] = {
    "logic": GNNS,
    "molecules": ("gin",),
    "compounds": ("gin",),
    "real": citation.GNNS,
    "null": ("gin",),
    "published": (published.GNN,),
}
_SHOWN_OF_RANKINGS = 5


@dataclass(frozen=True, eq=False)
class PreparedTask:
    """A task, the GNN that was trained on it, and the cases to explain."""

    task: Benchmark
    model: nn.Module
    score: float
    cases: list[Case]
    learned: bool


def prepare(suite: str, name: str, gnn: str, seed: int, num_cases: int, out: Path) -> PreparedTask:
    """Makes a task of a suite and trains its GNN, or reads it where that was done before.

    Args:
        suite: One of :data:`TASKS`.
        name: Name of the task.
        gnn: Convolution of the GNN.
        seed: Names the data, the weights and the draws.
        num_cases: Predictions that are explained at most.
        out: Folder of trained GNNs.
    """
    if suite == "published":
        return _prepare_published(name, seed, num_cases)
    task = _make_task(suite, name, seed)
    path = out / "gnns" / suite / f"{slug(name)}-{gnn}-{seed}-{task_digest(task)}.safetensors"
    if path.is_file():
        model, score = load_gnn(path)
    else:
        started = time.perf_counter()
        if suite == "null":
            model, score = null_cases.fit_null_gnn(gnn, task, seed)
        elif suite == "real":
            model, score = citation.fit_cora_gnn(gnn, task, seed)
        else:
            model, score = fit_gnn(gnn, task, seed)
        save_gnn(path, model, score)
        told = f"{name} {gnn} {seed}: trained to {score:.3f} ({time.perf_counter() - started:.1f} s)"
        print(told, file=sys.stderr, flush=True)
    if suite == "null":
        return PreparedTask(task, model, score, null_cases.null_cases(model, task)[:num_cases], True)
    real = suite == "real"
    instances = task.index.tolist() if real else task.instances()
    # GCN weighs a message by the degrees of both ends, so what it says depends on one step more.
    hops = (task.num_layers or 0) + (gnn == "gcn")
    cases = make_cases(model, task, instances, correct=not real, num_hops=hops)[:num_cases]
    return PreparedTask(task, model, score, cases, real or score >= LEARNED)


def _make_task(suite: str, name: str, seed: int) -> Benchmark:
    if suite == "real":
        return citation.make_cora_task(seed)
    if suite == "null":
        return null_cases.make_null_task(name, seed)
    if suite == "molecules":
        return molecules.make_molecule_task(name, seed)
    if suite == "compounds":
        return compounds.make_compound_task(name, seed)
    return logic_suite.make_logic_task(name, seed)


def _prepare_published(name: str, seed: int, num_cases: int) -> PreparedTask:
    """Reads a published dataset and its GNN; what the GNN gets wrong is explained too, as the protocol asks."""
    task = published.make_published_task(name, seed)
    model, score = published.load_published_gnn(task)
    cases = make_cases(model, task, task.instances()[:num_cases], correct=False, num_hops=(task.num_layers or 0) + 1)
    return PreparedTask(task, model, score, cases, learned=True)


def measure_shown(
    problem: PreparedTask, suite: str, seed: int, explainer: Explainer, subject: Subject, scores: Scores
) -> dict[str, float]:
    """Scores what an explainer shows of the cases of a suite.

    Args:
        problem: Task, GNN and cases.
        suite: The suite they are of.
        seed: Names the draws of random sets.
        explainer: What explained.
        subject: What it explained: some of the cases, which its ``index`` names.
        scores: What it said.

    Returns:
        The means of :func:`gflowbench.suites.scoring.summarize`, each name with ``shown_`` before it.
    """
    of_node = problem.task.task == "node"
    by_index = {case.instance if of_node else place: case for place, case in enumerate(problem.cases)}
    cases = [by_index[index] for index in subject.index.tolist()]
    explanations = explanations_of(explainer, scores, subject, cases)
    pairs = list(zip(cases, explanations, strict=True))
    sets = [node_sets(case, found, TOP if suite == "real" else ()) for case, found in pairs]
    rows = score_cases(problem.model, cases, explanations, sets)
    if suite == "null":
        for row, verdict in zip(rows, _better_than_random(problem.model, pairs, seed), strict=True):
            row["measured_holds"] = float(verdict)
    return {f"shown_{name}": value for name, value in summarize(rows).items()}


def _better_than_random(model: nn.Module, pairs: Sequence[tuple[Case, NodeExplanation]], seed: int) -> torch.Tensor:
    """Says which explanations are better than random ones of their size, ``[I]``; a ranking shows its best nodes."""
    shown = [
        shown_parts(case, found) or (connected_top(case, found.scores, _SHOWN_OF_RANKINGS),) for case, found in pairs
    ]
    return null_cases.better_than_random(model, [case for case, _ in pairs], shown, seed)
