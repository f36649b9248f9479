"""Whole commands killed, with their workers: ``bulk`` and ``evaluate``, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.counting import Count
from faults.kills import kill_until
from gflowbench.datasets.reference import reference_folder
from gflowexplainer import GFlowExplainer
from gflowexplainer.sources import save_graphs
from gflowexplainer.testing import NodeModel, random_graph


def _run(words: list[str], *, kill_after: float | None = None) -> int:
    """Runs a command, killed after some seconds with everything that it started; returns its exit code, or -9."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "gflowexplainer", *words]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, start_new_session=True, **silent)
    try:
        return process.wait(kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return -9


def _kill_and_finish(count: Count, kills: int, words: list[str], here: Path, wrong: Callable[[Path], str]) -> None:
    """Kills a command in folders of its own; ``wrong`` says what in one is not what is in the folder ``"0"``."""

    def begin(number: int) -> tuple[list[str], Callable[[], str]]:
        folder = here / str(number)
        return [*words, str(folder)], lambda: wrong(folder)

    kill_until(count, kills, begin, run=_run, most=5, earliest=0.25)


def bulk(kills: int) -> Count:
    """Kills the driver of ``bulk`` together with its workers."""
    count = Count("kill -9: bulk, driver and workers")
    try:
        import ray  # noqa: F401
    except ImportError:
        return count
    from gflowexplainer.bulk import read_rows

    with tempfile.TemporaryDirectory() as home:
        here, data = Path(home), random_graph(60, 0.03)
        save_graphs(here / "graph.safetensors", data)
        settings: dict[str, Any] = {"max_nodes": 3, "epochs": 2}
        GFlowExplainer(**settings).fit(NodeModel(), data, [0, 1], folder=here / "fitted", progress=False)
        words = ["bulk", "--explainer", str(here / "fitted"), "--model", "gflowexplainer.testing:NodeModel"]
        words += ["--data", str(here / "graph.safetensors"), "--all", "--part-size", "2", "--workers", "2", "--quiet"]

        def wrong(folder: Path) -> str:
            found, truth = read_rows(folder), read_rows(here / "0")
            if found.num_rows != 60:
                return f"{found.num_rows} rows instead of 60"
            return "" if found.sort_by("instance").equals(truth.sort_by("instance")) else "other rows"

        _kill_and_finish(count, kills, [*words, "--out"], here, wrong)
    return count


def evaluate(kills: int) -> Count:
    """Kills ``evaluate``, of the published GNN or, where its files are missing, of one that it trains first."""
    count, gnn = Count("kill -9: evaluate"), "trained" if reference_folder() is None else "published"
    with tempfile.TemporaryDirectory() as home:
        here = Path(home)
        words = ["evaluate", "--dataset", "tree-cycles", "--explainers", "random", "--gnn", gnn, "--every", "30"]
        words += ["--contexts", "5", "--seeds", "4", "--quiet", "--out"]

        def wrong(folder: Path) -> str:
            found, truth = (_scores(json.loads((run / "summary.json").read_text())) for run in (folder, here / "0"))
            other = [f"{a} instead of {b}" for a, b in zip(found, truth, strict=False) if a != b]
            return "" if found == truth != [] else f"another result: {' '.join(other)[:300]}"

        _kill_and_finish(count, kills, words, here, wrong)
    return count


def _scores(record: Any) -> list[Any]:
    """Returns everything in a summary that is no time, date or command."""
    if isinstance(record, dict):
        skipped = ("created", "command", "seconds", "run", "environment", "out")
        return [(k, _scores(v)) for k, v in sorted(record.items()) if not any(word in k for word in skipped)]
    return [_scores(v) for v in record] if isinstance(record, list) else [record]
