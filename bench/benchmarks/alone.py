"""Without a fit beside a fit to many instances: what is lost, and what a call takes.

Compared by the pooled AUC (``own``) on the same chosen instances of published graphs and GNNs, with the default
settings and the same seed. Every number comes from the public class, one call for each instance where nothing was
fitted.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from torch_geometric.data import Data

from benchmarks.measuring import environment, results_folder, threads, write_json
from benchmarks.peers import CONFIG, load
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.protocol.problems import Loaded
from gflowexplainer import GFlowExplainer
from gflowexplainer.report.tables import Table, join, number
from gflowexplainer.storage.files import write_text

EVERY = {"tree-cycles": 6, "tree-grid": 30, "ba-shapes": 12, "ba-community": 12}
"""Every n-th instance is chosen."""
SEEDS = (0, 1, 2)
TOGETHER, CHOSEN, ALONE = "fitted to all", "fitted to the chosen", "without a fit"


def measure(dataset: str, every: int, seed: int) -> dict[str, Any]:
    """Returns the AUC of each way on one dataset, and the seconds of each call where nothing was fitted."""
    loaded = load(dataset, "cpu")
    whole = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    chosen = whole.select(torch.arange(0, len(whole), every))
    truth = GroundTruth.of(loaded.benchmark, chosen)
    assert truth is not None
    graph = loaded.benchmark.graphs[0]
    data = Data(x=graph.x, edge_index=graph.edge_index)
    auc: dict[str, float] = {}
    seconds: dict[str, list[float]] = {}
    for name, fitted_to in ((TOGETHER, whole.index), (CHOSEN, chosen.index)):
        explainer = GFlowExplainer(seed=seed)
        explainer.fit(loaded.model, data, fitted_to, progress=False, model_config=CONFIG)
        auc[name] = _auc(explainer, loaded, data, chosen, truth)[0]
    auc[ALONE], seconds[ALONE] = _auc(GFlowExplainer(seed=seed), loaded, data, chosen, truth)
    sizes = {"instances": len(whole), "chosen": len(chosen)}
    return {"seed": seed, **sizes, "auc": auc, "seconds": seconds, **loaded.facts}


def _auc(
    explainer: GFlowExplainer, loaded: Loaded, data: Data, chosen: Subject, truth: GroundTruth
) -> tuple[float, list[float]]:
    """Explains one instance after the other; returns the AUC of their edges, and the seconds that each took."""
    masks, seconds = [], []
    parts = chosen.instances.edge_id.split(chosen.instances.edge_counts.tolist())
    for node, edges in zip(chosen.index.tolist(), parts, strict=True):
        began = time.perf_counter()
        (found,) = explainer.explain(loaded.model, data, [node], progress=False, model_config=CONFIG)
        masks.append(found.edge_mask[edges])
        _ = found.subgraphs
        seconds.append(time.perf_counter() - began)
    scores = Scores.of_edges(chosen.instances, torch.cat(masks))
    return agreement(chosen, scores, truth)["auc_own"], seconds


def publish(folder: Path) -> None:
    """Writes the page from what is stored and prints it: means over the seeds, medians of the calls."""
    stored = json.loads((folder / "results.json").read_text())
    accuracy, calls = [], []
    for dataset, runs in stored["datasets"].items():
        name = f"{dataset}, {runs[0]['chosen']} of {runs[0]['instances']}"
        accuracy.append((name, *(number(fmean(run["auc"][way] for run in runs)) for way in (TOGETHER, CHOSEN, ALONE))))
        first = median(run["seconds"][ALONE][0] for run in runs)
        later = median(second for run in runs for second in run["seconds"][ALONE][1:])
        slowest = max(second for run in runs for second in run["seconds"][ALONE])
        calls.append((dataset, *(f"{value:.2f}" for value in (first, later, slowest))))
    seeds = len(next(iter(stored["datasets"].values())))
    head = ("", TOGETHER, CHOSEN, ALONE)
    made = [
        Table("AUC (own) on the chosen instances", head, tuple(accuracy)),
        Table("Seconds of a call without a fit, 2 threads", ("", "first call", "next calls", "slowest"), tuple(calls)),
    ]
    text = join(made, "markdown", [f"`{stored['command']}`, {seeds} seeds, default settings."])
    write_text(folder / "summary.md", text)
    print(text)


def main(fast: bool = False) -> None:
    """Measures all datasets, and stores and prints the result."""
    folder, seeds = results_folder("alone", fast), SEEDS[:1] if fast else SEEDS
    with threads(2):
        found = {
            dataset: [measure(dataset, every * (2 if fast else 1), seed) for seed in seeds]
            for dataset, every in EVERY.items()
        }
    write_json(folder / "results.json", {"datasets": found, **environment()})
    publish(folder)
