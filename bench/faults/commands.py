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
from pathlib import Path
from typing import Any

from faults.counting import Count
from gflowexplainer import GFlowExplainer
from gflowexplainer.sources import save_graphs
from gflowexplainer.testing import NodeModel, random_graph

_MOMENTS = random.Random(1)


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


def _kill_and_finish(count: Count, kills: int, words: list[str], right: object) -> None:
    """Kills a command at random moments of its length, then lets it finish and looks at the result."""
    began = time.monotonic()
    first = _start([*words[:-1], words[-1] + "-unharmed"])
    if first.wait() != 0:
        count.add("unclear", "the command does not end even if nobody kills it")
        return
    takes, deaths = time.monotonic() - began, 0
    for _ in range(kills):
        deaths += _killed(words, (0.3 + 0.7 * _MOMENTS.random()) * takes)
    said = "" if _start(words).wait() == 0 else "going on failed"
    said = said or ("" if callable(right) and right() else "another result")
    for _ in range(deaths):
        count.add("survived" if not said else "wrong", said)


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
        settings = {"max_nodes": 3, "epochs": 2, "num_contexts": 2}
        GFlowExplainer(**settings).fit(NodeModel(), data, [0, 1], folder=here / "fitted", progress=False)
        words = ["bulk", "--explainer", str(here / "fitted"), "--model", "gflowexplainer.testing:NodeModel"]
        words += ["--data", str(here / "graph.safetensors"), "--all", "--part-size", "2", "--workers", "2", "--quiet"]

        def right() -> bool:
            found, truth = read_rows(here / "run"), read_rows(here / "run-unharmed")
            return found.sort_by("instance").equals(truth.sort_by("instance")) and found.num_rows == 60

        _kill_and_finish(count, kills, [*words, "--out", str(here / "run")], right)
    return count


def evaluate(kills: int) -> Count:
    """Kills ``evaluate``."""
    count = Count("kill -9: evaluate")
    with tempfile.TemporaryDirectory() as home:
        here = Path(home)
        words = ["evaluate", "--dataset", "tree-cycles", "--explainers", "random", "--gnn", "trained", "--every", "100"]
        words += ["--seeds", "2", "--quiet", "--out"]

        def right() -> bool:
            found, truth = ([*(here / name).glob("summary.json")] for name in ("run", "run-unharmed"))
            scores = [_scores(json.loads(path.read_text())) for path in (*found, *truth)]
            return len(scores) == 2 and scores[0] == scores[1] != []

        _kill_and_finish(count, kills, [*words, str(here / "run")], right)
    return count


def _scores(record: Any) -> list[Any]:
    """Returns everything in a summary that is no time, date or command."""
    if isinstance(record, dict):
        skipped = ("created", "command", "seconds", "run", "environment", "out")
        return [(k, _scores(v)) for k, v in sorted(record.items()) if not any(word in k for word in skipped)]
    return [_scores(v) for v in record] if isinstance(record, list) else [record]
