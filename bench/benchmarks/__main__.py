"""Runs the benchmarks: every module of this package that has a ``main``.

Those whose ``main`` takes ``fast`` are measurements, and run if none is named; others, such as the regression check,
run only by name. Options of the command line go to the ones whose ``main`` takes them.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
import time
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Benchmark:
    """One module of this package.

    Attributes:
        purpose: First line of its docstring.
        options: Names of the arguments of its ``main``.
    """

    purpose: str
    options: tuple[str, ...]


def find_benchmarks() -> dict[str, Benchmark]:
    """Finds the benchmarks by their source, without importing them."""
    found = {}
    for module in pkgutil.iter_modules([str(FOLDER)]):
        tree = ast.parse((FOLDER / f"{module.name}.py").read_text())
        mains = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
        if mains and not module.name.startswith("_"):
            arguments = mains[0].args
            options = tuple(argument.arg for argument in (*arguments.args, *arguments.kwonlyargs))
            found[module.name] = Benchmark((ast.get_docstring(tree) or "").partition("\n")[0], options)
    return found


def main() -> None:
    """Reads the command line and runs what it names."""
    benchmarks = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures speed and exactness.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to run (all that measure, if none is named)")
    parser.add_argument("--fast", action="store_true", help="a quick look at everything, into runs/bench-fast")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where 'peers' and 'profiles' run")
    parser.add_argument("--record", action="store_true", help="let 'check' keep what it finds instead of comparing it")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(benchmarks)):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    if arguments.list:
        for name, benchmark in benchmarks.items():
            print(f"{name:20} {benchmark.purpose}")
        return
    every = [name for name, benchmark in benchmarks.items() if "fast" in benchmark.options]
    for name in arguments.names or every:
        began = time.perf_counter()
        print(f"== {name}", flush=True)
        given = {option: value for option, value in vars(arguments).items() if option in benchmarks[name].options}
        importlib.import_module(f"benchmarks.{name}").main(**given)
        print(f"== {name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
