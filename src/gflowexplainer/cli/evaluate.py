"""``evaluate``: scores explainers by the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import PROBLEM, one_line_errors, print_table, shows_bars, teller
from gflowexplainer.cli.running import write_run_report
from gflowexplainer.errors import ConfigError, one_of

if TYPE_CHECKING:
    from gflowexplainer.evaluation import Contestant
    from gflowexplainer.evaluation.record import Record
    from gflowexplainer.runs import Run


def evaluate(
    context: typer.Context,
    dataset: Annotated[str, typer.Option(help="One or several datasets, separated by commas, or 'all' six.")] = "",
    suite: Annotated[str, typer.Option(help="'paper': the six datasets of the paper, instead of --dataset.")] = "",
    explainer: Annotated[
        str,
        typer.Option(help="One or several explainers, separated by commas, or 'floors'. (default: gflow and floors)"),
    ] = "gflow,floors",
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
        int | None, typer.Option(min=1, help="Size bound of explanations. (default: motif size + 1)")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="Nodes of a hard explanation. (default: motif size)")] = None,
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
    r"""Scores explainers by the protocol: prints a table, writes JSON, Markdown, LaTeX and a report.

    To copy:

      gflowexplainer evaluate --dataset tree-cycles --explainer gflow,random
      gflowexplainer evaluate --suite paper --gnn published --seeds 10
      gflowexplainer evaluate --dataset tree-grid --explainer gflow \
          --set gflow.beta=50 --out runs/grid
    """
    with one_line_errors(resumable=True):
        from gflowexplainer.evaluation import MetricSettings, ProtocolSettings, problem
        from gflowexplainer.evaluation import evaluate as run_protocol
        from gflowexplainer.evaluation.record import dumps
        from gflowexplainer.runs import Run

        options.check_device(device)
        settings = ProtocolSettings(
            metrics=MetricSettings(top_k=top_k, num_contexts=contexts),
            max_nodes=max_nodes,
            train_share=train_share,
        )
        contestants = _contestants(options.listed(explainer), setting or [])
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
                progress=shows_bars(quiet),
            )
            for kind in options.listed(gnn)
            for name in _datasets(dataset, suite)
        ]
        # Any selection of cells may be computed in one folder, so no question is refused in it.
        run = Run.begin(out, "evaluate", {}, settings=context.params)
        tell = teller(quiet)
        record = run_protocol(
            problems, contestants, seeds=range(seeds), out=out, settings=settings, report=None if quiet else tell
        )
        write_record(record, run)
        report = write_run_report(run)
        if as_json:
            typer.echo(dumps(record.to_dict(), indent=1))
        else:
            show_record(record)
            tell(f"Written: {out / 'results.json'}, results.md, results.tex")
            typer.echo(f"Report: {report}")
        if any(cell.status == "failed" for cell in record.cells):
            raise typer.Exit(PROBLEM)


def write_record(record: Record, run: Run, notes: Sequence[str] = ()) -> None:
    """Writes the record as JSON, and its tables as Markdown and LaTeX, with ``notes`` and failures below."""
    from gflowexplainer.evaluation.presentation import all_details, failures, overviews

    run.write_results(record.to_dict(), [*overviews(record), *all_details(record)], [*notes, *failures(record)])


def show_record(record: Record) -> None:
    """Prints the tables: explainers against datasets, or for a single dataset all metrics."""
    from gflowexplainer.evaluation.presentation import all_details, failures, overviews

    tables = overviews(record)[:2]
    details = all_details(record)
    for table in [*tables, *(details if len(details) == 1 else [])]:
        print_table(table)
        typer.echo()
    for line in failures(record):
        typer.echo(line, err=True)


def _datasets(text: str, suite: str) -> list[str]:
    """Names the datasets that ``--dataset`` or ``--suite`` asks for."""
    from gflowexplainer.evaluation.paper import DATASETS

    if bool(text) == bool(suite):
        raise ConfigError("Say which datasets: either --dataset NAME,NAME or --suite paper.")
    if suite:
        one_of("suite", suite, ("paper",))
        return list(DATASETS)
    return list(DATASETS) if text == "all" else options.listed(text)


def _contestants(names: Sequence[str], assignments: Sequence[str]) -> list[Contestant]:
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
        settings[one_of("explainer", name, tuple(wanted))][key] = options.value_of(value)
    return [Contestant.named(name, **settings[name]) for name in wanted]
