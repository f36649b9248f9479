"""Where a result comes from: the command, the versions and the kind of device that made it."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from gflowexplainer.version import __version__

PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn")


def environment() -> dict[str, Any]:
    """Says when, with which versions and on what kind of device something was computed."""
    versions = {"gflowexplainer": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    device: dict[str, Any] = {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    if torch.cuda.is_available():
        device["gpu"] = torch.cuda.get_device_name(0)
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"created": created, "versions": versions, "device": device}


def command_line() -> str:
    """Writes the command that runs, with the program's name instead of its path."""
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return shlex.join(["gflowexplainer" if program == "__main__.py" else program, *sys.argv[1:]])
