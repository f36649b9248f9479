"""Suites as problems of the protocol: the same cells, workers and metrics for every task and every explainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gflowbench.datasets import Benchmark
from gflowbench.models import MODELS
from gflowbench.protocol.printed_numbers import DATASETS
from gflowbench.protocol.problems import Loaded, Problem, problem
from gflowbench.suites.halves import seeds_of
from gflowexplainer.errors import DatasetError, one_of

LINK_TASKS = ("user-item-attr", "motif-links")
SUITES = ("paper", "logic", "molecules", "compounds", "real", "null", "published", "links")
LARGE_TASKS, FEW_CASES = 60, 24
"""Predictions of a task that are explained, and in a first look."""
FIRST_TASKS = ("or", "and-far", "sum-graph", "distance")
"""Logic tasks of a first look: enough alone, needed together, a value, and at nodes."""
FEW_TRAINING_LINKS = 16
_FIRST_LOOK = "gin"
_SIZE = 8
"""Nodes of an explanation at most where no truth says how large one is."""


def tasks_of(suite: str) -> tuple[str, ...]:
    """Returns the names of all tasks of a suite."""
    from gflowbench.suites.run import TASKS

    return {**TASKS, "paper": DATASETS, "links": LINK_TASKS}[one_of("suite", suite, SUITES)]


def problems_of(
    suite: str,
    out: Path,
    *,
    tasks: Sequence[str] = (),
    gnns: Sequence[str] = (),
    seeds: Sequence[int] = (),
    fast: bool = False,
) -> list[Problem]:
    """Names the problems of a suite.

    Args:
        suite: ``"paper"``: the paper's six datasets with published GNNs. ``"links"``: links of two graphs. Others: the
            suites of that name, with GNNs that are trained on first use and kept in ``out``.
        out: Folder of trained GNNs.
        tasks: Some tasks of the suite; all if not given.
        gnns: Convolutions, for suites whose GNNs are trained; those of the suite if not given.
        seeds: Seeds of data and GNNs, which say of which half they are (:mod:`gflowbench.suites.halves`); the first of
            the development half if not given.
        fast: One GNN a task, fewer predictions and training links, and of the logic tasks :data:`FIRST_TASKS`.
    """
    chosen = [one_of("task", name, tasks_of(suite)) for name in tasks or tasks_of(suite)]
    seeds = seeds or seeds_of("development", 1 if fast else 3)
    if suite == "paper":
        return [problem(name) for name in chosen]
    if suite == "links":
        return [found for name in chosen for found in _link_problems(name, seeds, fast)]
    from gflowbench.suites.digests import suites_code
    from gflowbench.suites.run import GNNS_OF

    if fast and not tasks and suite == "logic":
        chosen = list(FIRST_TASKS)
    kinds = [one_of("gnn", name, GNNS_OF[suite]) for name in gnns or GNNS_OF[suite]]
    if fast and not gnns:
        kinds = [_FIRST_LOOK] if _FIRST_LOOK in kinds else kinds[:1]
    number = FEW_CASES if fast else LARGE_TASKS
    return [
        Problem(
            task,
            f"{gnn} {seed}",
            partial(load_task, suite, task, gnn, seed, number, out),
            {"suite": suite, "seed": seed, "cases": number, "suites_code": suites_code()},
            gnn if gnn in MODELS else None,
            own_gnn=False,
        )
        for task in chosen
        for gnn in kinds
        for seed in seeds
    ]


def _link_problems(name: str, seeds: Sequence[int], fast: bool) -> list[Problem]:
    """Names a task of links with its GNNs: a generated one has one for each seed, on a graph of its own."""
    from gflowbench.typed.motif_links import load_motif_links
    from gflowbench.typed.user_item_attr import load_user_item_attr

    few: dict[str, Any] = {"num_train": FEW_TRAINING_LINKS} if fast else {}
    if name == "user-item-attr":
        return [Problem(name, "published", partial(load_user_item_attr, **few), {"suite": "links", **few}, links=True)]
    return [
        Problem(
            name,
            f"sage {seed}",
            partial(load_motif_links, seed, **few),
            {"suite": "links", "seed": seed, **few},
            links=True,
        )
        for seed in seeds
    ]


def load_task(suite: str, task: str, gnn: str, seed: int, num_cases: int, out: Path) -> Loaded:
    """Makes a task of a suite and trains its GNN, or reads it where that was done before."""
    from gflowbench.suites.run import measure_shown, prepare

    ready = prepare(suite, task, gnn, seed, num_cases, out)
    if not ready.learned or not ready.cases:
        raise DatasetError(f"The {gnn} of seed {seed} has not learned '{task}' (score {ready.score:.3f}): left out.")
    instances = [case.instance for case in ready.cases]
    benchmark = replace(ready.task.select(instances), motif_size=truth_size(ready.task, instances) or _SIZE)
    facts = {"gnn": f"{gnn} trained here, seed {seed}", "gnn_score": ready.score}
    return Loaded(ready.model, benchmark, benchmark.index, facts, partial(measure_shown, ready, suite, seed))


def truth_size(task: Benchmark, instances: Sequence[int]) -> int | None:
    """Returns the median number of nodes that decide an instance; ``None`` where nobody knows."""
    sizes = [int(task.truths[i].union.sum()) for i in instances if i in task.truths]
    sizes = [size for size in sizes if size]
    return int(torch.tensor(sizes).median()) if sizes else None
