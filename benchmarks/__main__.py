"""Runs the benchmarks: every module of this package that has a ``main(fast)``."""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
import time
from pathlib import Path

FOLDER = Path(__file__).parent


def find_benchmarks() -> dict[str, str]:
    """Finds the benchmarks by their source, without importing them: name and first line of each docstring."""
    found = {}
    for module in pkgutil.iter_modules([str(FOLDER)]):
        tree = ast.parse((FOLDER / f"{module.name}.py").read_text())
        if not module.name.startswith("_") and any(
            isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body
        ):
            found[module.name] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def main() -> None:
    """Reads the command line and runs what it names."""
    benchmarks = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures speed and exactness.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (all, if none is named)")
    parser.add_argument("--fast", action="store_true", help="a quick look at everything, into runs/bench-fast")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(benchmarks)):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    if arguments.list:
        for name, purpose in benchmarks.items():
            print(f"{name:20} {purpose}")
        return
    for name in arguments.names or benchmarks:
        began = time.perf_counter()
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main(fast=arguments.fast)
        print(f"== {name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
