"""Runs the typed tasks: ``python -m gflowbench.typed --tasks user-item-attr --seeds 0 1 2 3 4 --out results/typed``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gflowbench.typed.link_explainers import LINK_EXPLAINERS, LinkExplainer
from gflowbench.typed.link_floors import rarest_way
from gflowbench.typed.link_scores import score_links
from gflowbench.typed.link_truth import LinkTruth
from gflowbench.typed.meta_paths import GNNS, measure_meta_paths
from gflowbench.typed.motif_links import load_motif_links
from gflowbench.typed.page_link import page_link
from gflowbench.typed.user_item_attr import load_user_item_attr
from gflowexplainer.errors import GFlowExplainerError
from gflowexplainer.storage.files import write_json
from gflowexplainer.storage.provenance import command_line, environment

EXPLAINERS: dict[str, LinkExplainer] = {
    **LINK_EXPLAINERS,
    "rarest way": rarest_way,
    "PaGE-Link": page_link,
    "PaGE-Link, masks": partial(page_link, ranked=0),
}
TASKS = ("user-item-attr", "motif-links", *(f"meta-paths-{name}" for name in GNNS))


def measure_links(task: LinkTruth, name: str, seed: int) -> dict[str, Any]:
    """Scores one explainer on the links of a task: means over links."""
    answers = EXPLAINERS[name](task, seed)
    auc, hits = score_links(answers.scores, task, seed)
    found = {f"hit at {depth}": share for depth, share in hits.items()}
    return {"auc": auc, **found, "fit_seconds": answers.fit_seconds, "seconds": answers.seconds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments ask for and prints it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m gflowbench.typed", description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=TASKS, choices=TASKS)
    parser.add_argument("--explainers", nargs="*", default=tuple(EXPLAINERS), choices=tuple(EXPLAINERS))
    parser.add_argument("--seeds", nargs="*", type=int, default=(0, 1, 2, 3, 4))
    parser.add_argument("--out", type=Path, default=Path("results/typed"), help="folder of the summaries")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        for task in options.tasks:
            rows: dict[str, list[dict[str, Any]]] = {}
            for seed in options.seeds:
                if task in ("user-item-attr", "motif-links"):
                    links = load_user_item_attr() if task == "user-item-attr" else load_motif_links(seed)
                    for name in options.explainers:
                        rows.setdefault(name, []).append(measure_links(links, name, seed))
                        print(task, seed, name, rows[name][-1], flush=True)
                else:
                    rows.setdefault("ours", []).append(measure_meta_paths(task.removeprefix("meta-paths-"), seed))
                    print(task, seed, rows["ours"][-1], flush=True)
            write_json(options.out / task / "summary.json", summary(rows, list(options.seeds)))
    except GFlowExplainerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def summary(rows: dict[str, list[dict[str, Any]]], seeds: list[int]) -> dict[str, Any]:
    """Averages over seeds, with the spread between them, and says where that comes from."""
    return {
        "command": command_line(),
        **environment(),
        "seeds_used": seeds,
        "explainers": {
            name: {
                key: {
                    "mean": round(float(np.mean([row[key] for row in found])), 4),
                    "spread": round(float(np.std([row[key] for row in found])), 4),
                }
                for key in found[0]
            }
            for name, found in rows.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
