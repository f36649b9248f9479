"""``datasets``: counts what is in the datasets of the paper."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, print_table
from gflowexplainer.errors import one_of


def datasets(
    name: Annotated[str, typer.Option(help="One or several datasets, separated by commas, or 'all'.")] = "all",
    source: Annotated[
        str, typer.Option(help="'auto', 'generated', 'published' or 'downloaded', where the dataset has it.")
    ] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of generated data.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Counts nodes, edges, classes and motifs of the datasets.

    To copy:

      gflowexplainer datasets
      gflowexplainer datasets --name tree-cycles --source generated --json
    """
    with one_line_errors():
        from gflowbench.datasets import NAMES, load, statistics
        from gflowexplainer.errors import ConfigError
        from gflowexplainer.report.tables import Table

        # Graph-SST2 has to be built from text, which is no matter of a glance: only by its name.
        wanted = [n for n in NAMES if n != "graph-sst2"] if name == "all" else options.listed(name)
        if not wanted:
            raise ConfigError("'--name' is empty. Name a dataset, or 'all'.")
        for one in wanted:
            one_of("name", one, NAMES)
        loaded = [load(one, source, seed=seed) for one in wanted]
        counts = [vars(statistics(benchmark)) for benchmark in loaded]
        if as_json:
            rows = [
                {"name": b.name, "source": b.source, "provenance": b.provenance, **c}
                for b, c in zip(loaded, counts, strict=True)
            ]
            typer.echo(json.dumps(rows, indent=1))
            return
        heads = ("dataset", "source", *(key.replace("_", " ") for key in counts[0]))
        body = tuple((b.name, b.source, *map(_brief, c.values())) for b, c in zip(loaded, counts, strict=True))
        print_table(Table("Datasets", heads, body))


def _brief(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
