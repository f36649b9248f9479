import subprocess
import sys

import pytest
import typer

from gflowbench.paper import Scope, side_by_side
from gflowbench.paper.side_by_side import reproduce_side_by_side
from gflowexplainer.cli.application import app
from gflowexplainer.errors import ConfigError


def test_each_process_gets_a_part_of_its_own(tmp_path, monkeypatch):
    asked = []

    class Done(subprocess.Popen):
        def __init__(self, command, **settings):
            asked.append((command[3:], settings["env"]["OMP_NUM_THREADS"]))
            super().__init__(["true"], **settings)

    monkeypatch.setattr(side_by_side.subprocess, "Popen", Done)
    reproduce_side_by_side(["a", "b"], Scope(num_seeds=4, device="cuda"), tmp_path, 2)
    words = ["reproduce", "a", "b", "--seeds", "4", "--device", "cuda", "--out", str(tmp_path), "--part"]
    assert asked == [([*words, "1/2"], "1"), ([*words, "2/2"], "1")]
    understood = typer.main.get_command(app).commands["reproduce"].make_context("reproduce", asked[0][0][1:]).params
    assert (understood["part"], understood["seeds"], understood["device"]) == ("1/2", 4, "cuda")


def test_an_interrupt_ends_all_processes(tmp_path, monkeypatch):
    started = []

    class Sleeping(subprocess.Popen):
        def __init__(self, command, **settings):
            super().__init__([sys.executable, "-c", "import time; time.sleep(60)"], **settings)
            started.append(self)
            if len(started) == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side.subprocess, "Popen", Sleeping)
    with pytest.raises(KeyboardInterrupt):
        reproduce_side_by_side(["dataset-table"], Scope(), tmp_path, 2)
    assert started[0].returncode is not None
    started[1].kill()  # it was never handed over
    started[1].wait()


def test_no_process_is_no_answer(tmp_path):
    with pytest.raises(ConfigError, match="at least 1"):
        reproduce_side_by_side(["dataset-table"], Scope(), tmp_path, 0)
