"""What bounds the time: how much of an update and of a batch of explanations is operators, and on a GPU kernels.

The clock, the operators and the kernels of the same work. On a GPU the share of the clock in which kernels run tells
whether arithmetic bounds it, or the calls that start the kernels.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.measuring import environment, results_folder, threads, write_json
from benchmarks.peers import DATASETS, FILES, SEED, copied, explain_ours, fit_ours, load
from gflowbench.explainers.interface import Subject
from gflowexplainer.report.tables import NOT_THERE, Table, join
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.storage.files import write_text
from gflowexplainer.training.trainer import Trainer

COPIES, REPEATS, SHOWN = {"cpu": 1, "cuda": 50}, 5, 6


def look(work: Callable[[], object], device: str) -> dict[str, Any]:
    """Times some work, then lists the operators and kernels that it is made of."""

    def once() -> float:
        begin = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    once()
    seconds = median(once() for _ in range(REPEATS))
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
    with profile(activities=kinds) as found:
        once()
    events = found.key_averages()
    operators = [event for event in events if event.key.startswith("aten::")]
    kernels = [event for event in events if _is_kernel(event)]
    largest = sorted(kernels or operators, key=_own_time, reverse=True)[:SHOWN]
    return {
        "seconds": seconds,
        "operators": sum(event.count for event in operators),
        "kernels": sum(event.count for event in kernels),
        "kernel_seconds": sum(map(_own_time, kernels)) / 1e6,
        "largest": {event.key[:80]: _own_time(event) / 1e6 for event in largest},
    }


def _is_kernel(event: Any) -> bool:
    # Ranges that a program names stand on the same line of time as the kernels inside them.
    return event.device_type == DeviceType.CUDA and "#" not in event.key


def _own_time(event: Any) -> float:
    """Returns the microseconds of an operator or kernel itself."""
    return event.self_device_time_total if _is_kernel(event) else event.self_cpu_time_total


def measure(dataset: str, device: str, fast: bool) -> dict[str, Any]:
    """Looks at an update of the training and at a batch of explanations."""
    loaded = load(dataset, device)
    trainer = Trainer(FlowSampler(Settings(seed=SEED), Subject.of(loaded.model, loaded.benchmark, loaded.index)))
    many = copied(loaded, 1 if fast else COPIES[device])
    fitted = fit_ours(loaded, max_updates=2)
    return {
        "one update": look(trainer.step, device),
        f"explaining {len(many.index):,} instances": look(lambda: explain_ours(fitted, many), device),
    }


def table(stored: dict[str, Any]) -> Table:
    """Makes the table of one device."""
    rows = []
    for dataset, works in stored["datasets"].items():
        for name, found in works.items():
            share = f"{100 * found['kernel_seconds'] / found['seconds']:.0f} %" if found["kernels"] else NOT_THERE
            kernels = f"{found['kernels']:,}" if found["kernels"] else NOT_THERE
            largest = ", ".join(f"{key} {1e3 * value:.1f} ms" for key, value in found["largest"].items())
            clock = f"{1e3 * found['seconds']:.1f}"
            rows.append((f"{dataset}, {name}", clock, f"{found['operators']:,}", kernels, share, largest))
    heads = ("", "ms", "operators", "kernels", "clock in kernels", "largest by own time")
    return Table(f"What the time is made of ({stored['device']}, {stored['threads']} threads)", heads, tuple(rows))


def publish(folder: Path) -> None:
    """Writes the page from what is stored, CPU first, and prints it."""
    found = [json.loads((folder / file).read_text()) for file in FILES.values() if (folder / file).is_file()]
    notes = [
        f"`{stored['command']}` on {stored['device']}, {stored['date']}, torch {stored['versions']['torch']}."
        for stored in found
    ]
    text = join([table(stored) for stored in found], "markdown", notes)
    write_text(folder / "summary.md", text)
    print(text)


def main(fast: bool = False, device: str = "cpu") -> None:
    """Looks at both datasets, and stores and prints what is found."""
    folder = results_folder("profiles", fast)
    with threads(2):
        result = {
            "datasets": {dataset: measure(dataset, device, fast) for dataset in DATASETS},
            **environment(),
            "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
        }
    write_json(folder / FILES[device], result)
    publish(folder)
