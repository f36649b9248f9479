"""What answers change where a number that steers them is halved or doubled: ``python -m benchmarks.sensitivity``.

The tasks of the logic suite with one GNN, prepared by ``python -m benchmarks.gates --prepare``, are explained with each
number of :mod:`gflowexplainer.steering` changed alone. Of a share of an instance, its odds are halved or doubled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas
import torch

from benchmarks.gate_jobs import Job, Options, plan, run_job
from gflowexplainer import steering
from gflowexplainer.report.provenance import command_line
from gflowexplainer.report.tables import Table
from gflowexplainer.storage.files import write_text

NUMBERS = tuple(name for name in vars(steering) if name.isupper())
SHARES = ("FAR", "NEAR", "ENDING")
SCORES = ("auc", "exact_first", "exact_parts", "holds")


def main(arguments: Sequence[str] = ()) -> int:
    """Explains the tasks with each number changed, and prints a table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sensitivity", description=__doc__)
    parser.add_argument("--prepared", type=Path, default=Path("prepared"), help="folder of prepared tasks and GNNs")
    parser.add_argument("--gnn", default="gin", help="the GNN that is explained")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/sensitivity.md"))
    given = parser.parse_args(arguments)
    jobs = plan(["logic"], [given.seed], (), [given.gnn], ())
    changes = [("", 1.0), *((name, factor) for name in NUMBERS for factor in (0.5, 2.0))]
    todo = [(name, factor, job, given.prepared) for name, factor in changes for job in jobs]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        rows = [row for row in pool.map(_row, todo) if row]
    text = f"`{command_line()}`\n\n{_table(pandas.DataFrame(rows)).to_markdown()}"
    write_text(given.out, text)
    print(text)
    return 0


def changed(name: str, factor: float) -> float:
    """Returns a number of :mod:`~gflowexplainer.steering` halved or doubled; of a share, its odds."""
    value = getattr(steering, name)
    if name in SHARES:
        odds = factor * value / (1 - value)
        return odds / (1 + odds)
    return type(value)(value * factor)


def _row(todo: tuple[str, float, Job, Path]) -> dict[str, float | str]:
    """Explains one task with one number changed; scores by name, nothing where its GNN did not learn the task."""
    name, factor, job, prepared = todo
    torch.set_num_threads(1)
    settings = {"beta": changed(name, factor)} if name == "BETA" else {}
    value = changed(name, factor) if name else None
    modules = [
        module for path, module in sys.modules.items() if path.startswith("gflowexplainer") and name in vars(module)
    ]
    kept = [getattr(module, name) for module in modules]
    try:
        for module in modules:
            setattr(module, name, value)
        found = run_job(job, Options(prepared, settings))
    finally:
        for module, before in zip(modules, kept, strict=True):
            setattr(module, name, before)
    if not found["learned"]:
        return {}
    return {"number": name, "factor": factor, **{score: found[score] for score in SCORES if score in found}}


def _table(rows: pandas.DataFrame) -> Table:
    """Means over the tasks as they are, and the differences from them with each number changed."""
    means = rows.groupby(["number", "factor"], sort=False)[list(SCORES)].mean()
    usual = means.loc[("", 1.0)]
    lines = [("as it is", "", *(f"{usual[score]:.3f}" for score in SCORES))]
    for name in NUMBERS:
        for factor in (0.5, 2.0):
            change = means.loc[(name, factor)] - usual
            lines.append((name, f"{changed(name, factor):.4g}", *(f"{change[score]:+.3f}" for score in SCORES)))
    return Table("Each number halved and doubled", ("number", "then", *SCORES), tuple(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
