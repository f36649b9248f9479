"""The regression check: are we still as many times faster than our peers as when it was recorded?

Runs quick forms of some benchmarks and compares ratios to peers of the same run, never seconds, with those that
``python -m benchmarks check --record`` stored. Ratios of quick and full forms differ, so quick ones are recorded.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import measuring
from benchmarks.measuring import environment, results_folder, write_json

ALLOWED = 0.5
"""A ratio below so much of the recorded one is a regression; less is what a busy machine does."""


def of_cut_vertices(times: Mapping[str, Any]) -> dict[str, float]:
    """Reads how many times faster Theorem 1 is than a search from scratch in Rust, at each size bound."""
    return {f"rustworkx, K = {at['max_nodes']}": at["times_faster"]["rustworkx"] for at in times["all_steps_up_to_K"]}


def of_peers(found: Mapping[str, Any]) -> dict[str, float]:
    """Reads how many times faster explaining and training are than PyG's explainers."""
    return {f"{dataset}, {name}": r for dataset, one in found["datasets"].items() for name, r in one["ratios"].items()}


RATIOS: dict[str, tuple[str, Callable[[Mapping[str, Any]], dict[str, float]]]] = {
    "cut_vertices": ("times.json", of_cut_vertices),
    "peers": ("results.json", of_peers),
}
"""The benchmarks that are run, the file each writes, and how ratios are read from it."""


def run_quickly() -> dict[str, float]:
    """Runs the quick forms, leaving nothing behind, and gives their ratios."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch, patch.object(measuring, "FAST", Path(scratch)):
        for name, (file, read) in RATIOS.items():
            importlib.import_module(f"benchmarks.{name}").main(fast=True)
            ratios = read(json.loads((results_folder(name, fast=True) / file).read_text()))
            found |= {f"{name}: {what}": value for what, value in ratios.items()}
    return found


def regressions(recorded: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    """Says what fell below half of what was recorded, or was not measured at all, a line each."""
    lines = []
    for name, before in recorded.items():
        now = found.get(name)
        if now is None:
            lines.append(f"{name}: {before:.3g} times was recorded, and now it is not measured")
        elif not now >= ALLOWED * before:
            lines.append(f"{name}: {now:.3g} times, less than {ALLOWED:g} of the {before:.3g} that were recorded")
    return lines


def main(record: bool = False) -> None:
    """Compares, and ends with status 1 where something became slower; or records."""
    path = results_folder("check", fast=False) / "ratios.json"
    if not record and not path.is_file():
        sys.exit(f"There is nothing to compare with in '{path}'. Run python -m benchmarks check --record once.")
    found = run_quickly()
    if record:
        write_json(path, {"ratios": found, **environment()})
        print(f"{len(found)} ratios recorded in {path}")
        return
    recorded = json.loads(path.read_text())["ratios"]
    for name, now in found.items():
        print(f"{name:56} {now:9.3g} times, recorded {recorded.get(name, float('nan')):9.3g}")
    if lines := regressions(recorded, found):
        sys.exit("\n".join(["Slower than it was:", *lines]))
    print(f"None of {len(recorded)} ratios fell below {ALLOWED:g} of what was recorded.")
