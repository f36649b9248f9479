"""Are the shown probabilities right? Total variation to the exact target, wherever it can be listed.

``python -m benchmarks.exactness``: every explanation whose instance has at most 20,000 connected subgraphs is compared
with all of them: what is listed, which is listed first, and the masks.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.measuring import environment
from gflowbench.datasets import load
from gflowbench.models import load_published
from gflowexplainer import GFlowExplainer
from gflowexplainer.sources import karate_club
from gflowexplainer.storage.files import write_bytes

CASES = (
    ("tree-cycles", 20),
    ("tree-grid", 20),
    ("ba-shapes", 6),
    ("ba-2motifs", 6),
    ("mutagenicity", 6),
    ("karate", 6),
    ("karate", 20),
)
"""Datasets, and bounds on the size of subgraphs."""
_CONFIG = {"mode": "multiclass_classification", "return_type": "raw"}


def explanations(name: str, max_nodes: int, number: int, fitted: bool, seed: int, samples: int) -> Iterator[Any]:
    """Explains some instances of a dataset with the published GNN, or members of the karate club."""
    explainer = GFlowExplainer(max_nodes=max_nodes, num_samples=samples, seed=seed)
    if name == "karate":
        club = karate_club()
        model, data, index = club.model, club.graphs[0], list(range(34))
        level, some = "node", index[::2]
    else:
        benchmark = load(name, "published")
        model, level = load_published(name), benchmark.task
        index = benchmark.index[torch.randperm(len(benchmark.index), generator=torch.Generator().manual_seed(seed))]
        index = some = index[:number].tolist()
        data = benchmark.graphs[0] if level == "node" else [benchmark.graphs[i] for i in index]
        if level == "graph":
            index = some = None
    config = {**_CONFIG, "task_level": level}
    if fitted:
        explainer.fit(model, data, index=some, model_config=config, progress=False)
    yield from explainer.explain(model, data, index=index, model_config=config, progress=False)


def measure(name: str, max_nodes: int, number: int, fitted: bool, seed: int, samples: int) -> list[str]:
    """Returns a row of the table."""
    found, unlisted, doubted = [], 0, 0
    for explanation in explanations(name, max_nodes, number, fitted, seed, samples):
        certificate = explanation.certificate
        if certificate.distance is None:
            unlisted += 1
            doubted += explanation.error > 0.05
        else:
            found.append((certificate.distance, certificate.node_error))
    off = torch.tensor(found or [(torch.nan, torch.nan)])
    columns = [name, max_nodes, "yes" if fitted else "no", len(found)]
    columns += [f"{value:.3f}" for value in (off[:, 0].mean(), off[:, 0].max(), off[:, 1].max())]
    return [str(value) for value in (*columns, unlisted, doubted)]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=30, help="instances of a dataset")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=64, help="particles of each size")
    parser.add_argument("--out", type=Path, help="folder of the table; only printed if not given")
    options = parser.parse_args()
    header = ["dataset", "max_nodes", "fitted", "listed", "distance", "largest", "node error", "too many", "doubted"]
    rows = [
        measure(name, bound, options.number, fitted, options.seed, options.samples)
        for name, bound in CASES
        for fitted in (True, False)
    ]
    lines = ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]
    print("\n".join(lines))
    if options.out is not None:
        note = environment()
        said = f"`python -m benchmarks.exactness --number {options.number} --seed {options.seed} "
        said += f"--samples {options.samples}`, {note['date']}, "
        said += f"code {note['code']}, torch {note['versions']['torch']}."
        write_bytes(options.out / "exactness.md", ("\n".join([said, "", *lines]) + "\n").encode())


if __name__ == "__main__":
    main()
