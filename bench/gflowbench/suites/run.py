"""Runs suites: every cell is one task, GNN, seed and explainer, stored as one JSON file; finished cells are kept."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from gflowbench.suites import citation, compounds, logic_suite, molecules, null_cases, published
from gflowbench.suites.cases import Case, make_cases
from gflowbench.suites.digests import suites_code, task_digest
from gflowbench.suites.explaining import EXPLAINERS
from gflowbench.suites.gnn_fitting import LEARNED, fit_gnn
from gflowbench.suites.gnns import GNNS, load_gnn, save_gnn
from gflowbench.suites.halves import half_of
from gflowbench.suites.robust_scores import robust_scores
from gflowbench.suites.scoring import (
    TOP,
    NodeExplanation,
    connected_top,
    node_sets,
    score_cases,
    shown_parts,
    summarize,
)
from gflowbench.suites.task import SuiteTask
from gflowexplainer.errors import one_of
from gflowexplainer.storage.files import read_json, slug, write_json
from gflowexplainer.storage.provenance import code_digest

SUITES = ("logic", "molecules", "compounds", "real", "null", "published")
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
OURS = ("ours", "search")
"""Explainers of the library, whose cells depend on its code."""
_CASES, _FAST_CASES = 60, 24
_FLOOR_NODES = 8
_SHOWN_OF_RANKINGS = 5


@dataclass(frozen=True)
class Cell:
    """What is measured once.

    Attributes:
        suite: One of :data:`SUITES`.
        task: Task of the suite.
        gnn: Convolution of the GNN.
        seed: Names the data, the weights and the draws; its half is that of the cell.
        explainer: One of :data:`EXPLAINERS`.
        max_nodes: Bound on the size of subgraphs; ``None`` for the default.
        num_cases: Predictions that are explained at most.
    """

    suite: str
    task: str
    gnn: str
    seed: int
    explainer: str
    max_nodes: int | None
    num_cases: int

    def path(self, out: Path) -> Path:
        """The file of the cell."""
        bound = "" if self.max_nodes is None else f"-{self.max_nodes}"
        return out / "cells" / self.suite / slug(self.task) / f"{self.gnn}-{self.seed}-{self.explainer}{bound}.json"

    def identity(self) -> dict[str, Any]:
        """What a stored cell must agree with to be kept: its plan and the code; ours also with the library's."""
        return {**vars(self), "code": suites_code() + (code_digest() if self.explainer in OURS else "")}


@dataclass(frozen=True, eq=False)
class Problem:
    """A task, the GNN that was trained on it, and the cases to explain."""

    task: SuiteTask
    model: nn.Module
    score: float
    cases: list[Case]
    learned: bool


def plan(
    suite: str,
    *,
    tasks: Sequence[str] = (),
    gnns: Sequence[str] = (),
    seeds: Sequence[int],
    explainers: Sequence[str] = (),
    max_nodes: int | None = None,
    fast: bool = False,
) -> list[Cell]:
    """Returns the cells of a suite, those of one GNN next to each other."""
    one_of("suite", suite, SUITES)
    chosen_tasks = [one_of("task", name, TASKS[suite]) for name in tasks or TASKS[suite]]
    known = GNNS_OF[suite] if suite == "published" else GNNS
    chosen_gnns = [one_of("gnn", name, known) for name in gnns or GNNS_OF[suite]]
    chosen = [one_of("explainer", name, tuple(EXPLAINERS)) for name in explainers or EXPLAINERS]
    number = _FAST_CASES if fast else _CASES
    return [
        Cell(suite, task, gnn, seed, explainer, max_nodes, number)
        for task in chosen_tasks
        for gnn in chosen_gnns
        for seed in seeds
        for explainer in chosen
        if _applies(explainer, suite, task)
    ]


def run_cells(cells: Sequence[Cell], out: Path) -> Iterator[dict[str, Any]]:
    """Measures the cells that are not stored yet and yields the records of all, in order.

    A GNN that has not learned its task gives one record without scores for each of its cells.
    """
    problem: Problem | None = None
    own_sizes: list[int] | None = None
    current: tuple[str, str, str, int] | None = None
    for number, cell in enumerate(cells):
        if current != (cell.suite, cell.task, cell.gnn, cell.seed):
            current = (cell.suite, cell.task, cell.gnn, cell.seed)
            problem = own_sizes = None
        stored = cell.path(out)
        if stored.is_file():
            record = read_json(stored)
            if record.get("identity") == cell.identity() and record["own_sizes"] == own_sizes:
                own_sizes = _shown_sizes(record) or own_sizes
                yield record
                continue
        problem = prepare(cell, out) if problem is None else problem
        record = measure(cell, problem, own_sizes)
        own_sizes = _shown_sizes(record) or own_sizes
        write_json(stored, record)
        summary = record["summary"]
        told = " ".join(f"{key} {summary[key]:.3f}" for key in ("auc", "exact", "sufficiency") if key in summary)
        name = f"{cell.task} {cell.gnn} {cell.seed} {cell.explainer}"
        print(f"[{number + 1}/{len(cells)}] {name}: {told} ({record['seconds']:.1f} s)", file=sys.stderr, flush=True)
        yield record


def prepare(cell: Cell, out: Path) -> Problem:
    """Makes the task of a cell and trains its GNN, or reads it where that was done before."""
    if cell.suite == "published":
        return _prepare_published(cell)
    null = None
    if cell.suite == "null":
        null = null_cases.make_null_task(cell.task, cell.seed)
        task = null.task
    elif cell.suite == "real":
        task = citation.make_cora_task(cell.seed)
    elif cell.suite == "molecules":
        task = molecules.make_molecule_task(cell.task, cell.seed)
    elif cell.suite == "compounds":
        task = compounds.make_compound_task(cell.task, cell.seed)
    else:
        task = logic_suite.make_logic_task(cell.task, cell.seed)
    name = f"{slug(cell.task)}-{cell.gnn}-{cell.seed}-{task_digest(task)}"
    path = out / "gnns" / cell.suite / f"{name}.safetensors"
    if path.is_file():
        model, score = load_gnn(path)
    else:
        started = time.perf_counter()
        if null is not None:
            model, score = null_cases.fit_null_gnn(cell.gnn, null, cell.seed)
        elif cell.suite == "real":
            model, score = citation.fit_cora_gnn(cell.gnn, task, cell.seed)
        else:
            model, score = fit_gnn(cell.gnn, task, cell.seed)
        save_gnn(path, model, score)
        seconds = time.perf_counter() - started
        told = f"{cell.task} {cell.gnn} {cell.seed}: trained to {score:.3f} ({seconds:.1f} s)"
        print(told, file=sys.stderr, flush=True)
    if null is not None:
        return Problem(task, model, score, null_cases.null_cases(model, null)[: cell.num_cases], True)
    real = cell.suite == "real"
    instances = task.splits["test"].tolist() if real else task.instances()
    # GCN weighs a message by the degrees of both ends, so what it says depends on one step more.
    hops = task.num_layers + (cell.gnn == "gcn")
    cases = make_cases(model, task, instances, correct=not real, num_hops=hops)[: cell.num_cases]
    return Problem(task, model, score, cases, real or score >= LEARNED)


def _prepare_published(cell: Cell) -> Problem:
    """Reads a published dataset and its GNN; what the GNN gets wrong is explained too, as the protocol asks."""
    task = published.make_published_task(cell.task, cell.seed)
    model, score = published.load_published_gnn(task)
    cases = make_cases(model, task, task.instances()[: cell.num_cases], correct=False, num_hops=task.num_layers + 1)
    return Problem(task, model, score, cases, learned=True)


def measure(cell: Cell, problem: Problem, own_sizes: Sequence[int] | None = None) -> dict[str, Any]:
    """Explains the cases of a cell and scores them.

    Args:
        cell: What to measure.
        problem: Its task, GNN and cases.
        own_sizes: Nodes that our explainer shows of each case, where there is no truth to say how many it should be.

    Returns:
        The record: identity of the cell, scores of each case (``rows``) and their means (``summary``).
    """
    record: dict[str, Any] = {
        "identity": cell.identity(),
        "half": half_of(cell.seed),
        "gnn_score": problem.score,
        "learned": problem.learned,
        "num_cases": len(problem.cases),
        "seconds": 0.0,
        "own_sizes": None if own_sizes is None else list(own_sizes),
        "summary": {},
        "rows": [],
    }
    if not problem.learned or not problem.cases:
        return record
    bound = cell.max_nodes if cell.explainer in OURS else cell.max_nodes or _FLOOR_NODES
    started = time.perf_counter()
    explain = EXPLAINERS[cell.explainer]
    explanations = explain(problem.model, problem.task, problem.cases, seed=cell.seed, max_nodes=bound)
    record["seconds"] = time.perf_counter() - started
    real = cell.suite == "real"
    sizes: Sequence[int | None] = own_sizes or [None] * len(explanations)
    sets = [
        node_sets(case, found, TOP if real else (), own)
        for case, found, own in zip(problem.cases, explanations, sizes, strict=True)
    ]
    rows = score_cases(problem.model, problem.cases, explanations, sets)
    if cell.suite == "null":
        _judge(cell, problem, explanations, rows)
    if real:
        for row, more in zip(rows, robust_scores(problem.model, problem.cases, sets, cell.seed), strict=True):
            row |= more
    return {**record, "rows": rows, "summary": summarize(rows)}


def _shown_sizes(record: dict[str, Any]) -> list[int] | None:
    """Returns the nodes that ours shows of each case of a task without truth; ``None`` for any other record."""
    cell = record["identity"]
    if cell["suite"] != "real" or cell["explainer"] != "ours":
        return None
    return [int(row["size"]) for row in record["rows"]]


def _judge(
    cell: Cell, problem: Problem, explanations: Sequence[NodeExplanation], rows: Sequence[dict[str, float]]
) -> None:
    """Adds ``measured_holds`` to rows of null cases: whether what is shown is better than random, in place."""
    shown = [
        shown_parts(case, explanation) or (connected_top(case, explanation.scores, _SHOWN_OF_RANKINGS),)
        for case, explanation in zip(problem.cases, explanations, strict=True)
    ]
    verdicts = null_cases.better_than_random(problem.model, problem.cases, shown, cell.seed)
    for row, verdict in zip(rows, verdicts.tolist(), strict=True):
        row["measured_holds"] = float(verdict)


def _applies(explainer: str, suite: str, task: str) -> bool:
    """Says whether an explainer makes sense for a task."""
    if explainer == "truth":
        return suite not in ("real", "null")
    if explainer == "probability":
        return task in ("cora", "distance")
    if explainer == "rarity":
        return suite != "real"  # every paper has its own words
    return True
