"""What all benchmarks share: timing, a record of the surroundings, and where results go."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch

import gflowexplainer
from gflowexplainer.report.provenance import code_digest
from gflowexplainer.storage.files import write_bytes

Name = TypeVar("Name", bound=Hashable)
FULL, FAST = Path("results/bench"), Path("runs/bench-fast")
"""Where results go; quick runs go elsewhere, so that they never replace full ones."""
PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "networkx", "rustworkx")


def results_folder(name: str, fast: bool) -> Path:
    """Names the folder of a benchmark's results."""
    return (FAST if fast else FULL) / name


def environment() -> dict[str, Any]:
    """Records what a reader needs to judge a number: versions, code, threads, date, command."""
    return {
        "command": " ".join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "code": code_digest(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": {
            "gflowexplainer": gflowexplainer.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES if find_spec(name) is not None},
        },
        "threads": torch.get_num_threads(),
        "device": "cpu",
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes a result whole or not at all."""
    write_bytes(path, (json.dumps(content, indent=1) + "\n").encode())


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Returns torch so many threads for a block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def interleaved(
    contestants: Mapping[Name, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    warm: bool = False,
) -> dict[Name, list[float]]:
    """Times every contestant once a round, so that whatever slows the machine down slows all of them.

    Args:
        contestants: What to time. A contestant that returns a float has measured itself, and that counts instead.
        repeats: Number of rounds that count; one goes before them that does not.
        clock: :func:`time.thread_time` where all contestants keep to one thread: it does not count the time that
            the machine spends on other things.
        warm: Whether everything has run before, so that the first round counts too.

    Returns:
        Seconds of each round, for each contestant.
    """
    seconds: dict[Name, list[float]] = {name: [] for name in contestants}
    for number in range(1 if warm else 0, repeats + 1):
        for name, run in contestants.items():
            began = clock()
            answer = run()
            taken = answer if isinstance(answer, float) else clock() - began
            if number:
                seconds[name].append(taken)
    return seconds


def ratio(seconds: Mapping[str, list[float]], peer: str, subject: str) -> float:
    """Returns how many times faster ``subject`` is than ``peer``: the median over the rounds."""
    return median(theirs / ours for theirs, ours in zip(seconds[peer], seconds[subject], strict=True))
