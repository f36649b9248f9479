"""Runs the fault suite and prints the counts; the exit code is 1 if anything was unclear or wrong."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from faults import commands, files, inputs, kills, resources
from faults.counting import HEADS, Count


def main() -> int:
    """Runs what is asked for, all by default."""
    parts: dict[str, Callable[[], Count]] = {
        "inputs": inputs.bad_inputs,
        "files": lambda: files.corrupted(1000),
        "fit": lambda: kills.fits(60),
        "explain": lambda: kills.explains(40),
        "bulk": lambda: commands.bulk(20),
        "evaluate": lambda: commands.evaluate(20),
        "disk": lambda: resources.full_disks(12),
        "folders": resources.unwritable_folders,
        "writers": lambda: resources.two_writers(5),
        "signals": lambda: resources.endings(10),
        "threads": lambda: resources.threads(10),
        "memory": lambda: resources.growth(500),
    }
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(parts)}")
    asked = parser.parse_args().parts or list(parts)
    total = Count("all")
    print(f"{'fault':36}" + "".join(f"{head:>10}" for head in HEADS) + f"{'seconds':>10}", flush=True)
    for name in asked:
        began = time.monotonic()
        count = parts[name]()
        _show(count, time.monotonic() - began)
        total.notes += count.notes
        for head in HEADS:
            total.numbers[head] += count.numbers[head]
    _show(total)
    for note in total.notes:
        print(f"  {note}")
    return int(total.numbers["unclear"] + total.numbers["wrong"] > 0)


def _show(count: Count, seconds: float | None = None) -> None:
    took = "" if seconds is None else f"{seconds:10.1f}"
    print(f"{count.name:36}" + "".join(f"{count.numbers[head]:10}" for head in HEADS) + took, flush=True)


if __name__ == "__main__":
    sys.exit(main())
