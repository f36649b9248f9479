"""A graph task: which motif makes a GNN choose the class of a graph?

Generates graphs with a house or a five-cycle in them, trains a GNN to tell which, explains some of both classes by one
flow network, and writes a report in which the ground truth is drawn too.

    python examples/graphs.py --out runs/graphs
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from gflowbench.datasets import load
from gflowbench.models import train
from gflowexplainer import GFlowExplainer
from gflowexplainer.report import Case, Report, write_report
from gflowexplainer.report.truth import own_motif

CLASSES = ("cycle", "house")


def main() -> None:
    """Trains, fits, explains, reports."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--out", type=Path, default=Path("runs/graphs"), help="folder for everything that is written"
    )
    arguments.add_argument("--fast", action="store_true", help="few updates: shows that it runs, not what it can do")
    options = arguments.parse_args()
    torch.set_num_threads(1)

    benchmark = load("ba-2motifs", "generated", seed=0, num_graphs=30 if options.fast else 200)
    trained = train("gcn", benchmark, seed=0, progress=False, **({"max_epochs": 3} if options.fast else {}))
    print("accuracy of the GNN:", ", ".join(f"{name} {a.share:.2f}" for name, a in trained.accuracies.items()))

    index = benchmark.index.tolist()  # half of each class
    algorithm = GFlowExplainer(seed=0, **({"epochs": 5} if options.fast else {}))
    algorithm.fit(trained.model, benchmark.graphs, index=index)
    explanations = algorithm.explain(trained.model, benchmark.graphs, index=index)

    cases = []
    for place, explanation in list(zip(index, explanations, strict=True))[::4]:
        truth = own_motif(benchmark.graphs[place], None)
        cases.append(Case(f"graph {place}", explanation, truth=truth, classes=CLASSES))
        best = explanation.subgraphs[0]
        print(f"graph {place}: {best.nodes}, probability {best.probability:.2f}")
    settings = algorithm.settings.to_dict()
    print("Report:", write_report(Report("House or cycle?", cases, settings=settings), options.out / "report.html"))


if __name__ == "__main__":
    main()
