"""How objective, length of training and keep probability suit the context preset, on generated data alone.

Generated trees and GNNs trained here stand in for the published ones, which must not decide settings they are later
scored with. One number is compared: the pooled AUC (``own``) of the policy's exact edge marginals.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.distribution import Truth, trainer_of
from benchmarks.distribution_figures import markdown
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import load
from gflowbench.explainers.interface import Subject
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.models import train
from gflowexplainer.storage.files import write_bytes

GRAPHS = (("tree-cycles", 0, 1), ("tree-cycles", 1, 1), ("tree-grid", 0, 4))
"""Dataset, seed of data and GNN, and which share of the instances is used (every n-th)."""
KEEP = (0.5, 0.7)
RUNS = (
    ("flow_matching", 100),
    ("flow_matching", 200),
    ("detailed_balance", 100),
    ("log_partition_variance", 100),
)


def measure(dataset: str, seed: int, every: int) -> list[dict[str, Any]]:
    """Trains all candidates on one generated graph."""
    benchmark = load(dataset, source="generated", seed=seed)
    model = train("gcn", benchmark, seed=seed, progress=False).model
    subject = Subject.of(model, benchmark, benchmark.index[::every])
    ground = GroundTruth.of(benchmark, subject)
    found = []
    for keep in KEEP:
        for objective, epochs in RUNS:
            trainer = trainer_of(subject, keep_probability=keep, objective=objective, epochs=epochs)
            truth = Truth(trainer, ground)
            trainer.run(progress=False)
            policy = truth.policy(trainer)
            found.append(
                {
                    "keep_probability": keep,
                    "objective": objective,
                    "updates": epochs,
                    "auc_exact_target": truth.auc(truth.target),
                    "auc": truth.auc(policy),
                    "total_variation": truth.distance(policy),
                }
            )
    return found


def main(fast: bool = False) -> None:
    """Measures what is missing and writes the table."""
    folder = results_folder("defaults", fast)
    columns, rows = [], {}
    for dataset, seed, every in GRAPHS[: 1 if fast else None]:
        path = folder / f"{dataset}-{seed}.json"
        if not path.exists():
            runs = measure(dataset, seed, every * (6 if fast else 1))
            write_json(path, {"dataset": dataset, "seed": seed, "every": every, "runs": runs, **environment()})
        for run in json.loads(path.read_text())["runs"]:
            name = f"{run['objective'].replace('_', ' ')}, {run['updates']} updates, alpha {run['keep_probability']}"
            cells = f"{run['auc']:.3f}, {run['auc_exact_target']:.3f}, {run['total_variation']:.3f}"
            rows.setdefault(name, []).append(cells)
        columns.append(f"{dataset}, seed {seed}")
    table = {
        "title": "AUC (own) of the policy, AUC of the exact target, total variation between them",
        "head": ["settings", *columns],
        "rows": [[name, *cells] for name, cells in rows.items()],
    }
    text = markdown(table) + "\n"
    write_bytes(folder / "summary.md", text.encode())
    print(text)
