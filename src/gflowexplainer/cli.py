"""The command line. Each command reads its words, calls the library, and shows what came back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gflowexplainer.errors import ConfigError, GFlowExplainerError, one_of
from gflowexplainer.version import __version__

USAGE, PROBLEM = 2, 1
"""Exit codes: something was asked for that does not exist; something went wrong on the way."""

app = typer.Typer(
    name="gflowexplainer",
    help="Explains predictions of graph neural networks by connected subgraphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@contextmanager
def one_line_errors(code: int = PROBLEM) -> Iterator[None]:
    """Turns a mistake of the user into one line on stderr and an exit code."""
    try:
        yield
    except GFlowExplainerError as error:
        typer.echo(f"gflowexplainer: {error}", err=True)
        raise typer.Exit(code) from error


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def entrance(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Explains predictions of graph neural networks by connected subgraphs."""


@app.command()
def evaluate(
    dataset: Annotated[str, typer.Option(help="One or several datasets, separated by commas, or 'all' six.")],
    explainer: Annotated[
        str, typer.Option(help="One or several explainers, separated by commas, or 'floors'.")
    ] = "floors",
    gnn: Annotated[str, typer.Option(help="'published', 'trained', or both, separated by a comma.")] = "published",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, counted from 0.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for results; a second run goes on where one stopped.")] = Path(
        "runs/evaluation"
    ),
    instances: Annotated[
        str, typer.Option(help="'protocol': the published ids. 'all-roles': every motif node.")
    ] = "protocol",
    every: Annotated[int, typer.Option(min=1, help="Take each so many-th instance only.")] = 1,
    max_nodes: Annotated[
        int | None, typer.Option(min=1, help="Size bound of explanations. [default: motif size + 1]")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="Nodes of a hard explanation. [default: motif size]")] = None,
    contexts: Annotated[int, typer.Option(min=0, help="Draws of robust fidelity; 0 leaves it out.")] = 50,
    train_share: Annotated[
        float | None, typer.Option(help="Fit on this share of the instances, explain the others (inductive).")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="EXPLAINER.NAME=VALUE", help="A setting of an explainer; may be repeated."),
    ] = None,
    gnn_seed: Annotated[int, typer.Option(help="Seed of generated data and trained GNNs.")] = 0,
    architecture: Annotated[str, typer.Option(help="What to train with --gnn trained.")] = "gcn",
    device: Annotated[str, typer.Option(help="Where to compute: 'cpu' or 'cuda'.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print the record instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Scores explainers by the protocol: prints a table, writes JSON, Markdown and LaTeX."""
    from gflowexplainer.evaluation import MetricSettings, ProtocolSettings, problem
    from gflowexplainer.evaluation import evaluate as run
    from gflowexplainer.evaluation.record import dumps

    with one_line_errors(USAGE):
        _check_device(device)
        settings = ProtocolSettings(
            metrics=MetricSettings(top_k=top_k, num_contexts=contexts),
            max_nodes=max_nodes,
            train_share=train_share,
        )
        contestants = _contestants(_listed(explainer), setting or [])
        problems = [
            problem(
                name,
                kind,
                instances=instances,
                every=every,
                seed=gnn_seed,
                architecture=architecture,
                device=device,
                weights=out / "gnns",
                progress=not quiet,
            )
            for kind in _listed(gnn)
            for name in _datasets(dataset)
        ]
    with one_line_errors():
        record = run(
            problems,
            contestants,
            seeds=range(seeds),
            out=out,
            settings=settings,
            report=None if quiet else lambda line: typer.echo(line, err=True),
        )
        _write(record, out)
    if as_json:
        typer.echo(dumps(record.to_dict(), indent=1))
    else:
        _show(record, out)
    if any(cell.status == "failed" for cell in record.cells):
        raise typer.Exit(PROBLEM)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for data, GNN and results.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="Fixes data, GNN and explanations.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Generates Tree-Cycles, trains a GNN on it, explains its predictions and scores the explanations."""
    from gflowexplainer.evaluation import Contestant, ProtocolSettings, problem
    from gflowexplainer.evaluation import evaluate as run

    with one_line_errors():
        record = run(
            [problem("tree-cycles", "trained", seed=seed, weights=out / "gnns", progress=not quiet)],
            [Contestant.named(name) for name in ("gflow", "random", "distance", "probability")],
            seeds=[seed],
            out=out,
            settings=ProtocolSettings(),
            report=None if quiet else lambda line: typer.echo(line, err=True),
        )
        _write(record, out)
    _show(record, out)
    if any(cell.status == "failed" for cell in record.cells):
        raise typer.Exit(PROBLEM)


@app.command()
def datasets(
    name: Annotated[str, typer.Option(help="One or several datasets, separated by commas, or 'all'.")] = "all",
    source: Annotated[
        str, typer.Option(help="'auto', 'generated', 'published' or 'downloaded', where the dataset has it.")
    ] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of generated data.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Counts nodes, edges, classes and motifs of the datasets."""
    from gflowexplainer.datasets import NAMES, load, statistics
    from gflowexplainer.evaluation.tables import Table

    with one_line_errors(USAGE):
        # Graph-SST2 has to be built from text, which is no matter of a glance: only by its name.
        wanted = [n for n in NAMES if n != "graph-sst2"] if name == "all" else _listed(name)
        for one in wanted:
            one_of("name", one, NAMES)
    with one_line_errors():
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
    _console().print(Table("Datasets", heads, body).to_rich())


def main() -> None:
    """Runs the command line."""
    app(prog_name="gflowexplainer")


def _listed(text: str) -> list[str]:
    """Splits ``a,b`` and drops repeats."""
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _datasets(text: str) -> list[str]:
    from gflowexplainer.evaluation.paper import DATASETS

    return list(DATASETS) if text == "all" else _listed(text)


def _contestants(names: Sequence[str], assignments: Sequence[str]) -> list[Any]:
    """Finds explainers by name, each with its own settings."""
    from gflowexplainer.baselines.registry import FLOORS
    from gflowexplainer.evaluation import Contestant

    wanted = list(dict.fromkeys(one for name in names for one in (FLOORS if name == "floors" else (name,))))
    settings: dict[str, dict[str, Any]] = {name: {} for name in wanted}
    for assignment in assignments:
        place, equals, value = assignment.partition("=")
        name, dot, key = place.partition(".")
        if not (equals and dot and key):
            raise ConfigError(
                f"'--set' takes EXPLAINER.NAME=VALUE, such as random.num_samples=100 (got {assignment!r})."
            )
        settings[one_of("explainer", name, tuple(wanted))][key] = _value(value)
    return [Contestant.named(name, **settings[name]) for name in wanted]


def _value(text: str) -> Any:
    """Reads a number, true, false or null; anything else is a word."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check_device(device: str) -> None:
    import torch

    kind = one_of("device", device.partition(":")[0], ("cpu", "cuda"))
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError("'device' is 'cuda', but torch finds no GPU here. Use --device cpu.")


def _write(record: Any, out: Path) -> None:
    """Writes the record as JSON, and its tables as Markdown and LaTeX."""
    from gflowexplainer.evaluation.presentation import all_details, failures, overviews
    from gflowexplainer.evaluation.record import write_text
    from gflowexplainer.evaluation.tables import join

    tables, notes = [*overviews(record), *all_details(record)], failures(record)
    record.write(out / "results.json")
    write_text(out / "results.md", f"`{record.command}`\n\n" + join(tables, "markdown", notes))
    write_text(out / "results.tex", join(tables, "latex", [record.command, *notes]))


def _show(record: Any, out: Path) -> None:
    """Prints the tables: explainers against datasets, or for a single dataset all metrics."""
    from gflowexplainer.evaluation.presentation import all_details, failures, overviews

    console = _console()
    tables = overviews(record)[:2]
    details = all_details(record)
    for table in [*tables, *(details if len(details) == 1 else [])]:
        console.print(table.to_rich())
        console.print()
    for line in failures(record):
        typer.echo(line, err=True)
    typer.echo(f"Written: {out / 'results.json'}, results.md, results.tex", err=True)


def _console() -> Console:
    """Makes a console on stdout that does not squeeze tables when it writes to a file."""
    return Console(width=None if sys.stdout.isatty() else 160)


def _brief(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    main()
