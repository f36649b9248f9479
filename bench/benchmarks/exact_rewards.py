"""What each reward is worth at its exact optimum: AUC of the target distribution itself, without any learning of flows.

On the tree datasets every connected subgraph of an instance can be enumerated, so the best that any flow network could
do with a reward is known. Published GNNs, and GNNs of several kinds trained here on freshly generated trees.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

from benchmarks.distribution_figures import markdown
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import load, reference_folder
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowbench.metrics.auc import pooled_auc
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.models import load_published, train
from gflowexplainer.report.figures import save_figure
from gflowexplainer.storage.files import write_bytes

PLAIN = {"relative_beta": False, "min_nodes": 1, "max_nodes": 7, "measure": "uniform"}
REWARDS: dict[str, dict[str, Any]] = {
    "class probability of the ends (no reward)": {},
    "paper, beta 1": {"reward": "prediction", "beta": 1.0, **PLAIN},
    "paper, beta 10": {"reward": "prediction", "beta": 10.0, **PLAIN},
    "paper, beta 100": {"reward": "prediction", "beta": 100.0, **PLAIN},
    "regularised, beta 1": {"reward": "regularized", "beta": 1.0, **PLAIN},
    "regularised, beta 50": {"reward": "regularized", "beta": 50.0, **PLAIN},
    "context, alpha .5": {"preset": "context", "keep_probability": 0.5},
    "context, alpha .7": {"preset": "context", "keep_probability": 0.7},
    "consensus, K 6": {"max_nodes": 6},
    "consensus, K 8 (default)": {},
    "consensus, K 8, beta 1": {"beta": 1.0},
    "consensus, K 8, beta 4": {"beta": 4.0},
    "consensus, K 8, alpha .7": {"keep_probability": 0.7},
    "consensus, K 8, each subgraph alike, beta 2": {"measure": "uniform"},
    "consensus, K 8, each subgraph alike, beta 4": {"measure": "uniform", "beta": 4.0},
}
FLOOR = next(iter(REWARDS))
PROBLEMS: dict[str, dict[str, Any]] = {
    "Tree-Cycles, published": {"dataset": "tree-cycles"},
    "Tree-Grid, published": {"dataset": "tree-grid", "every": 4},
    "Tree-Cycles, fresh, GCN": {"dataset": "tree-cycles", "seed": 11, "model": "gcn", "every": 5},
    "Tree-Grid, fresh, GCN": {"dataset": "tree-grid", "seed": 12, "model": "gcn", "every": 10},
    "Tree-Cycles, fresh, GIN": {"dataset": "tree-cycles", "seed": 21, "model": "gin", "every": 5},
    "Tree-Grid, fresh, GraphSAGE": {"dataset": "tree-grid", "seed": 22, "model": "graphsage", "every": 10},
}
"""Published: the protocol's instances. Fresh: nodes of all roles, every n-th, of a GNN trained here."""


def subject_of(
    dataset: str, seed: int | None = None, model: str = "gcn", every: int = 1
) -> tuple[Subject, GroundTruth]:
    """Loads or generates the graph, and loads or trains the GNN."""
    if seed is None:
        benchmark, network = load(dataset, source="published"), load_published(dataset)
        index = torch.as_tensor(benchmark.index)
    else:
        benchmark = load(dataset, source="generated", seed=seed)
        network = train(model, benchmark, seed=seed, progress=False).model
        index = torch.nonzero(benchmark.graphs[0].motif_id >= 0).flatten()
    subject = Subject.of(network, benchmark, index[::every])
    truth = GroundTruth.of(benchmark, subject)
    assert truth is not None
    return subject, truth


def measure(problem: dict[str, Any], fast: bool) -> dict[str, float]:
    """Returns the AUC (``own``, pooled) of every reward's exact target."""
    subject, truth = subject_of(**{**problem, "every": problem.get("every", 1) * (6 if fast else 1)})
    edges = UndirectedEdges.of(subject.instances)
    found = {}
    for name, settings in REWARDS.items():
        explainer = create("probability") if name == FLOOR else create("exact", limit=2_000_000, **settings)
        explainer.fit(subject, 0)
        scores = explainer.explain(subject, 0)
        found[name] = pooled_auc(edges.merge(scores.edge), edges.merge(truth.own))
    return found


def main(fast: bool = False) -> None:
    """Measures what is missing, writes table and figure."""
    folder = results_folder("exact_rewards", fast)
    problems = {n: p for n, p in PROBLEMS.items() if "seed" in p or reference_folder() is not None}
    results = {}
    for name, problem in list(problems.items())[: 1 if fast else None]:
        path = folder / f"{name.lower().replace(', ', '-').replace(' ', '-')}.json"
        if not path.exists():
            write_json(path, {"problem": name, **problem, "auc": measure(problem, fast), **environment()})
        results[name] = json.loads(path.read_text())["auc"]
    rows = [[reward, *(f"{results[name][reward]:.3f}" for name in results)] for reward in REWARDS]
    table = {"title": "AUC (own) of the exact target of each reward", "head": ["reward", *results], "rows": rows}
    text = markdown(table) + "\n"
    write_bytes(folder / "summary.md", text.encode())
    draw(results, folder)
    print(text)


def draw(results: dict[str, dict[str, float]], folder: Path) -> None:
    """Draws one mark for each reward and problem."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    names = list(REWARDS)
    for (problem, found), marker in zip(results.items(), "oDs^vP", strict=False):
        filled = "published" in problem
        axes.plot(
            [found[name] for name in names],
            range(len(names)),
            linestyle="none",
            marker=marker,
            markersize=7,
            color="#0b3c5d" if filled else "#d0671b",
            markerfacecolor="#0b3c5d" if filled else "white",
            label=problem,
        )
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("AUC of the exact target distribution (own motif, pooled)")
    axes.axvline(0.5, color="#9aa5b1", linewidth=0.8)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.legend(fontsize=8, loc="lower left")
    save_figure(figure, folder / "exact_rewards")
    plt.close(figure)
