"""How much memory a piece of work takes at its peak, in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field: str = "VmRSS") -> int:
    """Reads the resident memory of this process in bytes; ``"VmHWM"`` for its peak."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) << 10


@contextmanager
def growth(record: dict[str, Any], name: str) -> Iterator[None]:
    """Records by how many bytes memory grows at most within a block, pages of mapped files included."""
    gc.collect()
    # What earlier work left free goes back first, or it would hide what this work takes.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    _RESET.write_text("5")
    before = resident()
    yield
    record[name] = resident("VmHWM") - before


def in_a_process(function: str, **arguments: Any) -> dict[str, Any]:
    """Calls ``benchmarks.module:function`` with plain arguments in a new process; it returns what JSON can hold."""
    module, _, name = function.partition(":")
    code = f"import json, sys; from {module} import {name}; print(json.dumps({name}(**json.loads(sys.argv[1]))))"
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])
