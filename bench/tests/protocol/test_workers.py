"""Cells computed by several processes; what travels to them must be importable there."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch

from gflowbench.datasets import Benchmark
from gflowbench.metrics import MetricSettings
from gflowbench.protocol import Contestant, Loaded, Problem, ProtocolSettings, evaluate
from gflowbench.protocol.plan import Part
from gflowexplainer.errors import ConfigError
from gflowexplainer.testing import NodeModel, house

QUICK = ProtocolSettings(metrics=MetricSettings(num_contexts=2))
TIMES = ("fit_seconds", "milliseconds")


def toy(name, load=None):
    graph = house()
    graph.y = torch.zeros(5, dtype=torch.long)
    graph.motif_id = torch.tensor([0, 0, -1, -1, 0])
    benchmark = Benchmark.from_graphs(graph, name=name, index=[0, 4], motif_size=3)
    return Problem(name, "toy", load or partial(Loaded, NodeModel(), benchmark, benchmark.index))


def numbers(record):
    return [
        (*cell.group, cell.seed, {k: v for k, v in cell.metrics.items() if k not in TIMES}) for cell in record.cells
    ]


def test_two_processes_give_what_one_gives_and_one_that_dies_takes_its_own_cell_only(tmp_path):
    contestants = [Contestant.named("random", num_samples=9), Contestant.named("breadth-first")]
    alone = evaluate([toy("house")], contestants, seeds=range(3), out=tmp_path / "one", settings=QUICK)
    out, lines = tmp_path / "two", []
    evaluate([toy("house")], contestants[:1], seeds=[1], out=out, settings=QUICK)
    deadly = toy("deadly", partial(os._exit, 3))

    def plan(explainer, dataset):
        rests = dataset == "deadly" and explainer == "breadth-first"
        return Part(seeds=1 if dataset == "deadly" else None, left_out="it rests" if rests else "")

    both = evaluate(
        [toy("house"), deadly],
        contestants,
        seeds=range(3),
        out=out,
        settings=QUICK,
        plan=plan,
        jobs=2,
        report=lines.append,
    )
    assert both.cells[-1].error == (
        "Its process ended (exit code 3), often for lack of memory. Run it again with fewer jobs."
    )
    # In the order of the list, whoever was first.
    assert numbers(both)[:-1] == numbers(alone)
    assert both.stability == alone.stability
    assert lines[0].startswith("left out: breadth-first on deadly")
    assert [line.split("]")[0] for line in lines[1:]] == [f"[{i}/7" for i in range(1, 8)]
    assert ["(stored)" in line for line in lines[1:]] == [True] + [False] * 6
    assert not active_children()


def test_what_cannot_travel_is_said(tmp_path):
    problem = toy("house")
    strangers = [Contestant(name, lambda: None) for name in ("one", "two")]
    with pytest.raises(ConfigError, match="or use jobs=1"):
        evaluate([problem], strangers, seeds=[0], out=tmp_path, jobs=2)
    assert not active_children()
    with pytest.raises(ConfigError, match="'jobs' must be at least 1"):
        evaluate([problem], strangers, seeds=[0], out=tmp_path, jobs=0)


SCRIPT = """
import signal
import sys
import time
from test_toys import toy
from gflowbench.explainers import create
from gflowbench.protocol import Contestant, evaluate


class Slow:
    name = "slow"

    def fit(self, subject, seed):
        time.sleep(600 * (seed > 1))

    def explain(self, subject, seed):
        return create("random", num_samples=3).explain(subject, seed)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins without one
    evaluate([toy("house")], [Contestant("slow", Slow)], seeds=range(6), out=sys.argv[1], jobs=2, report=print)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_all_and_leaves_what_is_finished(tmp_path):
    (tmp_path / "test_toys.py").write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, "script.py", "out"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cells = tmp_path / "out" / "cells"
    give_up = time.monotonic() + 300
    while process.poll() is None and len(list(cells.glob("*.json"))) < 2 and time.monotonic() < give_up:
        time.sleep(0.05)
    try:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        _, err = process.communicate(timeout=60)  # ends only when the last process has let go of the stream
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert err.count("Traceback") == 1, err
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert sorted(path.name.split(".")[3] for path in cells.glob("*.json")) == ["0", "1"]
