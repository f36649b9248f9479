"""Where a result comes from: the command, the code, the versions and the kind of device that made it."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import sys
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from gflowexplainer.errors import ConfigError
from gflowexplainer.version import __version__

LIBRARY = "gflowexplainer"
PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn")


def environment() -> dict[str, Any]:
    """Returns when, with which versions, which code and on what kind of device something was computed."""
    versions = {"gflowexplainer": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    device = {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()}
    device |= {"threads": torch.get_num_threads()}
    if torch.cuda.is_available():
        device["gpu"] = torch.cuda.get_device_name(0)
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"created": created, "code": code_digest(), "versions": versions, "device": device}


@cache
def code_digest(*packages: str) -> str:
    """Returns a digest of the Python files of packages and modules, by dotted name; of the library without any.

    It is computed once a process, so that it names the code that runs. Line endings do not count.
    """
    files: dict[str, Path] = {}
    for name in packages or (LIBRARY,):
        path = source_path(name)
        if path is None:
            raise ConfigError(
                f"There is no source code of '{name}' to compute a digest of. Name a package or a module."
            )
        outside = path.parents[name.count(".")]
        found = path.rglob("*.py") if path.is_dir() else [path]
        files |= {file.relative_to(outside).as_posix(): file for file in found}
    digest = hashlib.sha256()
    for place, file in sorted(files.items()):
        content = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{place}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def source_path(name: str) -> Path | None:
    """Returns the file of a module or the folder of a package, without importing it; ``None`` if there is none."""
    top, *parts = name.split(".")
    found = find_spec(top)
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]).joinpath(*parts)
    file = path.with_name(f"{path.name}.py")
    return path if (path / "__init__.py").is_file() else file if parts and file.is_file() else None


def command_line() -> str:
    """Returns the command that runs, with the program's name instead of its path."""
    program = [Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"]
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if program == ["__main__.py"] or (spec is not None and program[0].endswith(".py")):
        package = "gflowexplainer" if spec is None else spec.name.removesuffix(".__main__")
        program = ["gflowexplainer"] if package == "gflowexplainer" else ["python", "-m", package]
    return shlex.join([*program, *sys.argv[1:]])
