"""Whole commands killed, with their workers: ``bulk`` and ``evaluate``, as a person runs them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.counting import Count
from gflowbench.datasets.reference import reference_folder
from gflowexplainer import GFlowExplainer
from gflowexplainer.sources import save_graphs
from gflowexplainer.testing import NodeModel, random_graph

_MOMENTS = random.Random(1)
_IN_ONE = 5
"""Kills of one run, at most, before it is let finish."""


def _start(words: list[str]) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "gflowexplainer", *words]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _killed(words: list[str], seconds: float) -> bool:
    """Starts a command and kills it with everything that it started; ``False`` if it ended before."""
    process = _start(words)
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


def _kill_and_finish(count: Count, kills: int, words: list[str], out: Path, wrong: Callable[[Path], str]) -> None:
    """Kills a command at random moments of its length, lets it finish, looks at the result; until there were enough.

    Args:
        count: Where it is counted.
        kills: How many to kill.
        words: The command, without the name of its folder.
        out: Folder of the run that nobody kills; those of the others are named after it.
        wrong: Says what in a folder is not what is in ``out``; an empty text if all is.
    """
    began = time.monotonic()
    if _start([*words, str(out)]).wait() != 0:
        count.add("unclear", "the command does not end even if nobody kills it")
        return
    takes, done, number = time.monotonic() - began, 0, 0
    while done < kills:
        folder, deaths = out.with_name(f"{out.name}-{number}"), 0
        number += 1
        while deaths < _IN_ONE and done + deaths < kills:
            if not _killed([*words, str(folder)], (0.25 + 0.75 * _MOMENTS.random()) * takes):
                break
            deaths += 1
        said = "" if _start([*words, str(folder)]).wait() == 0 else "going on failed"
        said = said or wrong(folder)
        for _ in range(deaths):
            count.add("survived" if not said else "wrong", said)
        done += deaths


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
            found, truth = read_rows(folder), read_rows(here / "run")
            if found.num_rows != 60:
                return f"{found.num_rows} rows instead of 60"
            return "" if found.sort_by("instance").equals(truth.sort_by("instance")) else "other rows"

        _kill_and_finish(count, kills, [*words, "--out"], here / "run", wrong)
    return count


def evaluate(kills: int) -> Count:
    """Kills ``evaluate``, of the published GNN or, where its files are missing, of one that it trains first."""
    count, gnn = Count("kill -9: evaluate"), "trained" if reference_folder() is None else "published"
    with tempfile.TemporaryDirectory() as home:
        here = Path(home)
        words = ["evaluate", "--dataset", "tree-cycles", "--explainers", "random", "--gnn", gnn, "--every", "30"]
        words += ["--contexts", "5", "--seeds", "4", "--quiet", "--out"]

        def wrong(folder: Path) -> str:
            found, truth = (_scores(json.loads((run / "summary.json").read_text())) for run in (folder, here / "run"))
            other = [f"{a} instead of {b}" for a, b in zip(found, truth, strict=False) if a != b]
            return "" if found == truth != [] else f"another result: {' '.join(other)[:300]}"

        _kill_and_finish(count, kills, words, here / "run", wrong)
    return count


def _scores(record: Any) -> list[Any]:
    """Returns everything in a summary that is no time, date or command."""
    if isinstance(record, dict):
        skipped = ("created", "command", "seconds", "run", "environment", "out")
        return [(k, _scores(v)) for k, v in sorted(record.items()) if not any(word in k for word in skipped)]
    return [_scores(v) for v in record] if isinstance(record, list) else [record]
