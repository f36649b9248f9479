"""Runs a suite: ``python -m gflowbench.suites --suite logic --fast --out results/suites``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from gflowbench.suites.halves import HALVES, half_of, seeds_of
from gflowbench.suites.run import EXPLAINERS, SUITES, plan, run_cells
from gflowbench.suites.table import markdown
from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.storage.files import write_text
from gflowexplainer.storage.provenance import command_line


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments ask for and prints the tables; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m gflowbench.suites", description=__doc__)
    parser.add_argument("--suite", choices=SUITES, required=True)
    parser.add_argument("--tasks", nargs="*", default=(), help="tasks of the suite; all if not given")
    parser.add_argument(
        "--gnns", nargs="*", default=(), help="gcn, gin, graphsage, gat; those of the suite if not given"
    )
    parser.add_argument("--half", choices=HALVES, default="development", help="whose seeds are run")
    parser.add_argument("--seeds", nargs="*", type=int, default=(), help="some seeds of the half; all if not given")
    parser.add_argument("--explainers", nargs="*", default=(), help=f"of {', '.join(EXPLAINERS)}; all if not given")
    parser.add_argument("--max-nodes", type=int, help="bound on the size of subgraphs; the default if not given")
    parser.add_argument("--fast", action="store_true", help="one seed and fewer predictions")
    parser.add_argument("--out", type=Path, default=Path("results/suites"), help="folder of cells and GNNs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        if wrong := [seed for seed in options.seeds if half_of(seed) != options.half]:
            raise ConfigError(
                f"Seeds {wrong} are not of the half '{options.half}', which has {seeds_of(options.half)}."
            )
        cells = plan(
            options.suite,
            tasks=options.tasks,
            gnns=options.gnns,
            seeds=options.seeds or seeds_of(options.half, 1 if options.fast else None),
            explainers=options.explainers,
            max_nodes=options.max_nodes,
            fast=options.fast,
        )
        table = markdown(list(run_cells(cells, options.out)))
    except GFlowExplainerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_text(options.out / f"{options.suite}-{options.half}.md", f"`{command_line()}`\n\n{table}")
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
