"""The defaults beside one change each, on generated graphs and GNNs trained here, which nothing is scored on later.

One number is compared: the pooled AUC (``own``) of an explanation by 64 samples. Data and GNN have seeds of their own,
and every change is tried with the same seeds of training.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.measuring import environment, results_folder, threads, write_json
from gflowbench.datasets import load
from gflowbench.explainers import create
from gflowbench.explainers.interface import Subject
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.models import train
from gflowexplainer.report.tables import Table, join, number
from gflowexplainer.storage.files import write_text

GRAPHS = {"tree-cycles": 1, "tree-grid": 4, "ba-shapes": 2, "ba-2motifs": 4}
"""Every n-th instance of a dataset is used."""
DATA_SEED, SEEDS = 11, (0, 1)
CHANGES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "beta 1": {"beta": 1.0},
    "beta 3": {"beta": 3.0},
    "beta 5": {"beta": 5.0},
    "uniform measure": {"measure": "uniform"},
    "4 contexts": {"num_contexts": 4},
    "32 contexts": {"num_contexts": 32},
    "contexts keep 0.7": {"keep_probability": 0.7},
    "at most 6 nodes": {"max_nodes": 6},
    "at most 10 nodes": {"max_nodes": 10},
    "half as long": {"max_updates": 25},
    "twice as long": {"max_updates": 100},
    "200 updates of one step": {"max_updates": 200, "descents": 1},
    "learning rate 0.02": {"learning_rate": 0.02},
}


def measure(dataset: str, every: int, file: Path, fast: bool) -> dict[str, Any]:
    """Tries what is not in the file yet, and stores each as it ends."""
    stored = json.loads(file.read_text()) if file.exists() else {"dataset": dataset, "runs": {}, **environment()}
    if all(name in stored["runs"] for name in CHANGES):
        return stored
    benchmark = load(dataset, source="generated", seed=DATA_SEED)
    model = train("gcn", benchmark, seed=DATA_SEED, progress=False).model
    subject = Subject.of(model, benchmark, benchmark.index[:: every * (10 if fast else 1)])
    truth = GroundTruth.of(benchmark, subject)
    assert truth is not None
    for name, changes in CHANGES.items():
        if name in stored["runs"]:
            continue
        run: dict[str, list[float]] = {"auc": [], "seconds": []}
        for seed in SEEDS[: 1 if fast else None]:
            explainer, began = create("gflow", **changes), time.process_time()
            explainer.fit(subject, seed)
            run["seconds"].append(time.process_time() - began)
            run["auc"].append(agreement(subject, explainer.explain(subject, seed), truth)["auc_own"])
        stored["runs"][name] = run
        write_json(file, stored)
    return stored


def main(fast: bool = False) -> None:
    """Measures what is missing and writes the table."""
    folder = results_folder("default_changes", fast)
    with threads(1):
        found = {name: measure(name, every, folder / f"{name}.json", fast) for name, every in GRAPHS.items()}
    rows = []
    for change in CHANGES:
        runs = [stored["runs"][change] for stored in found.values()]
        cells = [f"{number(fmean(run['auc']))} ({fmean(run['seconds']):.0f} s)" for run in runs]
        everything = [value for run in runs for value in run["auc"]]
        rows.append((change, *cells, number(fmean(everything)), number(min(everything))))
    title = f"AUC (own) and seconds of a fit, mean of {len(SEEDS)} seeds, generated data (seed {DATA_SEED})"
    heads = ("", *found, "mean", "worst of all")
    some = next(iter(found.values()))
    versions = ", ".join(f"{name} {version}" for name, version in some["versions"].items())
    text = join([Table(title, heads, tuple(rows))], "markdown", [f"`{some['command']}`, {some['date']}. {versions}."])
    write_text(folder / "summary.md", text)
    print(text)
