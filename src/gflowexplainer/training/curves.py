"""The curves of a training: one JSON line an update."""

from __future__ import annotations

import json
import math
from pathlib import Path

from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.files import make_folder, write_bytes

UpdateRecord = dict[str, float | int]
METRICS = "metrics.jsonl"


def append_lines(path: Path, records: list[UpdateRecord]) -> None:
    """Adds the records of further updates."""
    make_folder(path.parent)
    try:
        with path.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
    except OSError as error:
        raise CheckpointError(
            f"'{path}' could not be written: {error.strerror or error}. Free some space; the same call goes on."
        ) from error


def cut_lines(path: Path, iteration: int) -> None:
    """Drops the lines of updates from ``iteration`` on, which the checkpoint does not know of, and broken lines."""
    if not path.exists():
        return
    lines = path.read_text().splitlines()
    known = [line for line in lines if _iteration_of(line) < iteration]
    if len(known) < len(lines):
        write_bytes(path, "".join(line + "\n" for line in known).encode())


def _iteration_of(line: str) -> float:
    try:
        return json.loads(line)["iteration"]
    except (ValueError, KeyError, TypeError):
        return math.inf
