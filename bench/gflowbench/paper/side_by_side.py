"""Computes the steps of experiments in several processes, which share nothing but the folder of the results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gflowbench.paper.experiment import Scope
from gflowbench.paper.run_experiment import options_of
from gflowexplainer.errors import ConfigError

PATIENCE = 10.0
"""Seconds that a process has to end after it was told to."""


def reproduce_side_by_side(names: Sequence[str], scope: Scope, base: Path, jobs: int, *, quiet: bool = False) -> None:
    """Runs each experiment's steps in ``jobs`` processes with one thread each; they tell of their steps themselves.

    What fails in them is tried again, and reported, by whoever runs the experiments next. When an exception flies
    (Ctrl-C is one), all processes are ended; steps that were finished are stored.

    Args:
        names: Experiments.
        scope: How much of them.
        base: Folder of the experiments' folders.
        jobs: Number of processes.
        quiet: Whether they tell nothing.
    """
    if jobs < 1:
        raise ConfigError(f"'jobs' must be at least 1 (got {jobs}).")
    command = [sys.executable, "-m", "gflowexplainer", "reproduce", *names, *options_of(scope), "--out", str(base)]
    command += ["--quiet"] if quiet else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(1, jobs + 1):
            # In sessions of their own: Ctrl-C reaches only this process, which ends them.
            running.append(
                subprocess.Popen([*command, "--part", f"{number}/{jobs}"], env=environment, start_new_session=True)
            )
        for process in running:
            process.wait()
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
