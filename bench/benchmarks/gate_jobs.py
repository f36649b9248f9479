"""The jobs of the accuracy gates: one task, GNN and seed each, explained by the public class and scored."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.gate_problems import read
from gflowbench.explainers.gflow import scores_of
from gflowbench.explainers.interface import Subject
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.protocol.problems import problem
from gflowbench.suites.explaining import explain_cases
from gflowbench.suites.run import GNNS_OF, TASKS, PreparedTask
from gflowbench.suites.scoring import TOP, node_sets, score_cases, summarize
from gflowbench.typed.link_explainers import LinkGFlow
from gflowbench.typed.link_scores import score_links
from gflowbench.typed.user_item_attr import load_user_item_attr
from gflowexplainer import GFlowExplainer
from gflowexplainer.storage.files import slug

GATES = ("six", "shown", "logic", "molecules", "compounds", "real", "null", "user-item-attr")
PREPARED = ("logic", "molecules", "compounds", "real", "null")
"""Gates whose GNNs are trained here, and whose graphs are made here but for Cora."""
TASKS_OF = {
    **{gate: TASKS[gate] for gate in PREPARED},
    "six": TASKS["published"],
    "shown": TASKS["published"][:5],
    "compounds": tuple(name for name in TASKS["compounds"] if not name.endswith("-numbers")),
    "user-item-attr": ("user-item-attr",),
}
CASES = {"logic": 24, "molecules": 24, "compounds": 24}
"""Predictions of a task that are explained at most; 60 in the other gates."""
PEERS = ("occlusion", "saliency", "integrated")
PEERS_OF = {
    **dict.fromkeys(("logic", "molecules", "compounds"), PEERS),
    "real": ("occlusion", "greedy", "saliency", "integrated", "random"),
}
REGISTERED: dict[str, tuple[str, dict[str, Any]]] = {
    "ours": ("gflow", {}),
    "saliency": ("saliency", {"of": "features"}),
    "integrated": ("integrated-gradients", {"of": "features", "steps": 16}),
}
"""Explainers whose name or settings are others in the registry."""
_SECONDS = {"logic": 20, "molecules": 20, "compounds": 20, "real": 110, "null": 25, "shown": 30, "user-item-attr": 260}
_SECONDS_OF = {"ba-community": 140, "ba-shapes": 110, "mutagenicity": 60}
"""Roughly what a job takes, so that the longest begin first."""


@dataclass(frozen=True)
class Job:
    """What is measured once; ``max_nodes`` is ``None`` for the default."""

    gate: str
    task: str
    gnn: str
    seed: int
    max_nodes: int | None = None

    @property
    def name(self) -> str:
        """Short name."""
        bound = "" if self.max_nodes is None else f"-{self.max_nodes}"
        return f"{self.gate}.{slug(self.task)}.{self.gnn}.{self.seed}{bound}"

    def file(self, folder: Path) -> Path:
        """Where its result is stored."""
        return folder / f"{self.name}.json"


@dataclass(frozen=True)
class Options:
    """What all jobs have in common.

    Attributes:
        prepared: Folder of prepared tasks and GNNs.
        settings: Further arguments of the explainer.
        cases: Predictions of a suite's task at most; by default those of the gate.
        graphs: Graphs of Mutagenicity at most, evenly spaced.
        links_every: Every n-th link is explained.
    """

    prepared: Path
    settings: Mapping[str, Any]
    cases: int | None = None
    graphs: int | None = None
    links_every: int = 1


def plan(
    gates: Sequence[str], seeds: Sequence[int], tasks: Sequence[str], gnns: Sequence[str], bounds: Sequence[int]
) -> list[Job]:
    """Returns the jobs of some gates, those that take longest first."""
    jobs = [
        Job(gate, task, gnn, seed, bound)
        for gate in gates
        for task in TASKS_OF[gate]
        if not tasks or task in tasks
        for gnn in GNNS_OF.get(gate, ("published",))
        if not gnns or gnn in gnns
        for seed in seeds
        for bound in (bounds if gate in ("six", "shown") and bounds else (None,))
    ]
    return sorted(jobs, key=lambda job: -_SECONDS_OF.get(job.task, _SECONDS.get(job.gate, 30)))


def run_job(job: Job, options: Options) -> dict[str, Any]:
    """Measures a job: scores by name, and the seconds of our fit and explanations."""
    settings = dict(options.settings)
    if job.max_nodes is not None:
        settings["max_nodes"] = job.max_nodes
    if job.gate == "six":
        return _six(job, options, settings)
    if job.gate == "user-item-attr":
        return _links(job, options, settings)
    return _suite(job, options, settings)


def _six(job: Job, options: Options, settings: dict[str, Any]) -> dict[str, Any]:
    """Fits to the protocol's instances of a published dataset, explains them, and compares edge masks."""
    loaded = problem(job.task).load()
    index = loaded.index
    if job.task == "mutagenicity" and options.graphs:
        index = index[torch.linspace(0, len(index) - 1, min(options.graphs, len(index))).round().long()]
    subject = Subject.of(loaded.model, loaded.benchmark, index)
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert truth is not None
    began = time.perf_counter()
    explainer = GFlowExplainer(seed=job.seed, **settings)
    explainer.fit(**subject.request, progress=False)
    fitted = time.perf_counter()
    found = explainer.explain(**subject.request, progress=False)
    scores = scores_of(found, subject, explainer.settings.max_nodes)
    times = {"fit_seconds": fitted - began, "seconds": time.perf_counter() - began}
    return {**agreement(subject, scores, truth), "cases": len(index), **times}


def _links(job: Job, options: Options, settings: dict[str, Any]) -> dict[str, Any]:
    """Explains the links of UserItemAttr."""
    task = load_user_item_attr().every(options.links_every)
    began = time.perf_counter()
    explainer = LinkGFlow(**settings)
    explainer.fit(task, job.seed)
    fitted = time.perf_counter()
    scores = explainer.explain(task, job.seed)
    times = {"fit_seconds": fitted - began, "seconds": time.perf_counter() - began}
    auc, hits = score_links(scores, task, job.seed)
    hit = {f"hit@{depth}": share for depth, share in hits.items()}
    return {"auc": auc, **hit, "cases": len(task), **times}


def _suite(job: Job, options: Options, settings: dict[str, Any]) -> dict[str, Any]:
    """Explains cases of a suite by ours and by peers; the scores of peers carry their names."""
    found = read(options.prepared, job, options.cases or CASES.get(job.gate, 60))
    row = {"gnn_score": found.score, "learned": found.learned, "cases": len(found.cases), "seconds": 0.0}
    if not found.learned or not found.cases:
        return {**row, "learned": False}
    began = time.perf_counter()
    ours, sizes = _explained(found, job, "ours", settings, None)
    row["seconds"] = time.perf_counter() - began
    for name in PEERS_OF.get(job.gate, ()):
        scores, _ = _explained(found, job, name, {"max_nodes": 8}, sizes if job.gate == "real" else None)
        kept = scores if job.gate == "real" else {"auc": scores["auc"]} if "auc" in scores else {}
        row |= {f"{name}.{key}": value for key, value in kept.items()}
    return {**ours, **row}


def _explained(
    found: PreparedTask, job: Job, name: str, settings: dict[str, Any], sizes: list[int] | None
) -> tuple[dict[str, float], list[int]]:
    """Explains all cases by one explainer; returns the means of its scores, and how many nodes it shows of each."""
    known, more = REGISTERED.get(name, (name, {}))
    explanations = explain_cases(
        found.model, found.task, found.cases, explainer=known, seed=job.seed, **more, **settings
    )
    top = TOP if job.gate == "real" else ()
    own: Sequence[int | None] = sizes or [None] * len(found.cases)
    sets = [node_sets(case, one, top, size) for case, one, size in zip(found.cases, explanations, own, strict=True)]
    rows = score_cases(found.model, found.cases, explanations, sets)
    return summarize(rows), [int(row.get("size", 0)) for row in rows]
