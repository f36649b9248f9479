"""One policy for many instances beside a fit for each instance alone: does sharing lose accuracy?

Compared by the pooled AUC (``own``) on the same chosen instances of published graphs and GNNs, with the default
settings and the same seed, by both readings of the samples. "Alone" uses the settings for many on one instance;
"without a fit" is what the public explainer does when it is asked at once.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

from benchmarks.measuring import environment, results_folder, write_json
from benchmarks.peers import CONFIG, load
from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.protocol.problems import Loaded
from gflowexplainer import GFlowExplainer
from gflowexplainer.choices import Weighting
from gflowexplainer.report.tables import Table, join, number
from gflowexplainer.storage.files import write_text

EVERY = {"tree-cycles": 6, "tree-grid": 30, "ba-shapes": 12}
"""Every n-th instance is chosen."""
SEEDS = (0, 1, 2)
TOGETHER, CHOSEN, ALONE = "together", "together on the chosen only", "alone"
HEARD, UNHEARD = "without a fit", "without a fit, nor reference_nodes"
WAYS = (TOGETHER, CHOSEN, HEARD, UNHEARD, ALONE)


def scores_of(fitted_on: Subject, asked: Subject, seed: int) -> dict[str, Scores]:
    """Fits to some instances and explains others: the scores by each reading."""
    explainer = GFlow()
    explainer.fit(fitted_on, seed)
    found = {}
    for weighting in Weighting.names():
        explainer.explainer.weighting = weighting
        found[weighting] = explainer.explain(asked, seed)
    return found


def alone(chosen: Subject, seed: int) -> dict[str, Scores]:
    """Fits to each instance by itself and puts the scores below one another."""
    each = []
    for place in torch.arange(len(chosen), device=chosen.instances.device).split(1):
        one = chosen.select(place)
        each.append(scores_of(one, one, seed))
    return {
        weighting: Scores(
            torch.cat([found[weighting].node for found in each]),
            torch.cat([found[weighting].edge for found in each]),
        )
        for weighting in Weighting.names()
    }


def unfitted(loaded: Loaded, chosen: Subject, seed: int, **changes: Any) -> dict[str, Scores]:
    """Asks the public explainer without fitting it: each instance gets a short training of its own."""
    graph, found = loaded.benchmark.graphs[0], {}
    for weighting in Weighting.names():
        algorithm = GFlowExplainer(seed=seed, weighting=weighting, **changes)
        data = Data(x=graph.x, edge_index=graph.edge_index)
        explanations = algorithm.explain(loaded.model, data, chosen.index, progress=False, model_config=CONFIG)
        parts = chosen.instances.edge_id.split(chosen.instances.edge_counts.tolist())
        masks = [one.edge_mask[edges] for one, edges in zip(explanations, parts, strict=True)]
        found[weighting] = Scores.of_edges(chosen.instances, torch.cat(masks))
    return found


def measure(dataset: str, every: int, seed: int) -> dict[str, Any]:
    """Returns the AUC of each way and each reading on one dataset, and the seconds of each way."""
    loaded = load(dataset, "cpu")
    whole = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    chosen = whole.select(torch.arange(0, len(whole), every))
    truth = GroundTruth.of(loaded.benchmark, chosen)
    assert truth is not None
    ways = {
        TOGETHER: lambda: scores_of(whole, chosen, seed),
        CHOSEN: lambda: scores_of(chosen, chosen, seed),
        HEARD: lambda: unfitted(loaded, chosen, seed),
        UNHEARD: lambda: unfitted(loaded, chosen, seed, reference_nodes=0),
        ALONE: lambda: alone(chosen, seed),
    }
    auc, seconds = {}, {}
    for name, way in ways.items():
        began = time.perf_counter()
        scores = way()
        seconds[name] = time.perf_counter() - began
        auc[name] = {weighting: agreement(chosen, found, truth)["auc_own"] for weighting, found in scores.items()}
    return {
        "seed": seed,
        "instances": len(whole),
        "chosen": len(chosen),
        "auc": auc,
        "seconds": seconds,
        **loaded.facts,
    }


def publish(folder: Path) -> None:
    """Writes the page from what is stored and prints it: means over the seeds."""
    stored = json.loads((folder / "results.json").read_text())
    made = []
    for weighting in Weighting.names():
        rows = []
        for dataset, runs in stored["datasets"].items():
            mean = {way: fmean(run["auc"][way][weighting] for run in runs) for way in WAYS}
            gained = f"{mean[TOGETHER] - mean[ALONE]:+.3f}"
            count = f"{dataset}, {runs[0]['chosen']} of {runs[0]['instances']}"
            rows.append((count, *(number(value) for value in mean.values()), gained))
        title = f"AUC (own) on the chosen instances, {weighting} reading"
        made.append(Table(title, ("", *mean, "together - alone"), tuple(rows)))
    seeds = len(next(iter(stored["datasets"].values())))
    text = join(made, "markdown", [f"`{stored['command']}`, mean of {seeds} seeds, default settings."])
    write_text(folder / "summary.md", text)
    print(text)


def main(fast: bool = False) -> None:
    """Measures all datasets, and stores and prints the result."""
    folder, seeds = results_folder("alone", fast), SEEDS[:1] if fast else SEEDS
    found = {
        dataset: [measure(dataset, every * (2 if fast else 1), seed) for seed in seeds]
        for dataset, every in EVERY.items()
    }
    write_json(folder / "results.json", {"datasets": found, **environment()})
    publish(folder)
