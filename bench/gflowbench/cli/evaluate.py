"""``evaluate``: scores explainers by the protocol."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import PROBLEM, one_line_errors, print_table, shows_bars, teller
from gflowexplainer.errors import ConfigError, one_of

if TYPE_CHECKING:
    from gflowbench.protocol import Contestant
    from gflowbench.protocol.record import Record
    from gflowexplainer.report.run_folder import Run

MOST_JOBS = 8
"""Processes at most if nobody says how many: each takes its gigabyte of memory."""


def evaluate(
    context: typer.Context,
    dataset: Annotated[str, typer.Option(help="One or several datasets, separated by commas, or 'all' six.")] = "",
    suite: Annotated[str, typer.Option(help="'paper': the six datasets of the paper, instead of --dataset.")] = "",
    explainer: Annotated[
        str,
        typer.Option(
            "--explainer",
            "--explainers",
            help="Names separated by commas; 'floors', 'ours' and 'peers' stand for several, 'all' for every one.",
        ),
    ] = "gflow,floors",
    gnn: Annotated[str, typer.Option(help="'published', 'trained', or both, separated by a comma.")] = "published",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, counted from 0.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for results; a second run goes on where one stopped.")] = Path(
        "runs/evaluation"
    ),
    instances: Annotated[
        str, typer.Option(help="'protocol': the published ids. 'all-roles': every motif node.")
    ] = "protocol",
    every: Annotated[int, typer.Option(min=1, help="Take every n-th instance only.")] = 1,
    fast: Annotated[
        bool, typer.Option("--fast", help="A first look at all: one seed, few instances; ten minutes on 2 cores.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="With --suite: slow explainers too get all instances and seeds.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that compute side by side, with one thread each. (default: 1; with --suite or --fast one a "
            "core, at most 8)",
        ),
    ] = None,
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
      gflowexplainer evaluate --suite paper --explainers all --fast --jobs 2
      gflowexplainer evaluate --suite paper --explainers all --seeds 10 --jobs 16
      gflowexplainer evaluate --dataset tree-grid --explainer gflow \
          --set gflow.beta=50 --out runs/grid
    """
    with one_line_errors(resumable=True):
        from gflowbench.metrics import MetricSettings
        from gflowbench.protocol import ProtocolSettings, plan, problem
        from gflowbench.protocol import evaluate as run_protocol
        from gflowexplainer.report.run_folder import Run
        from gflowexplainer.storage.files import dumps
        from gflowexplainer.storage.lock import folder_lock

        options.check_device(device)
        settings = ProtocolSettings(
            metrics=MetricSettings(top_k=top_k, num_contexts=contexts),
            max_nodes=max_nodes,
            train_share=train_share,
        )
        if fast and whole:
            raise ConfigError("'--fast' and '--whole' contradict each other. Leave one out.")
        thinning = plan.fast if fast else plan.suite if suite and not whole else plan.whole
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
        context.with_resource(folder_lock(out))
        run = Run.begin(out, "evaluate", {}, settings=context.params)
        tell = teller(quiet)
        record = run_protocol(
            problems,
            contestants,
            seeds=range(seeds),
            out=out,
            settings=settings,
            report=None if quiet else tell,
            plan=thinning,
            jobs=jobs or (_cores() if suite or fast else 1),
        )
        write_record(record, run)
        report = _report(run)
        if as_json:
            typer.echo(dumps(record.to_dict(), indent=1))
        else:
            show_record(record)
            tell(f"Written: {out / 'summary.json'}, values.json, results.md, results.tex")
            typer.echo(report)
        if any(cell.status == "failed" for cell in record.cells):
            raise typer.Exit(PROBLEM)


def write_record(record: Record, run: Run, notes: Sequence[str] = ()) -> None:
    """Writes the record as JSON, and its tables as Markdown and LaTeX, with ``notes`` and failures below."""
    from gflowbench.protocol.presentation import all_details, costs, failures, in_short, overviews, thinning
    from gflowbench.protocol.record import left_out_lines

    tables = [*in_short(record), *overviews(record), *thinning(record), *costs(record), *all_details(record)]
    run.write_tables(tables, [*notes, *left_out_lines(record.left_out), *failures(record)])
    record.write(run.folder)


def show_record(record: Record) -> None:
    """Prints the tables: explainers against datasets, or for a single dataset all metrics."""
    from gflowbench.protocol.presentation import all_details, failures, overviews, thinning

    tables = [*overviews(record)[:2], *thinning(record)]
    details = all_details(record)
    for table in [*tables, *(details if len(details) == 1 else [])]:
        print_table(table)
        typer.echo()
    for line in failures(record):
        typer.echo(line, err=True)


def _cores() -> int:
    """Counts the cores this process may use, at most :data:`MOST_JOBS`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_JOBS)


def _report(run: Run) -> str:
    """Writes the report and says where it is; hours of results are not lost for want of it."""
    from gflowexplainer.report.run_folder import write_run_report

    try:
        return f"Report: {write_run_report(run)}"
    except (ConfigError, ImportError) as error:
        return f"No report: {error}"


def _datasets(text: str, suite: str) -> list[str]:
    """Names the datasets that ``--dataset`` or ``--suite`` asks for."""
    from gflowbench.protocol.printed_numbers import DATASETS

    if bool(text) == bool(suite):
        raise ConfigError("Say which datasets: either --dataset NAME,NAME or --suite paper.")
    if suite:
        one_of("suite", suite, ("paper",))
        return list(DATASETS)
    return list(DATASETS) if text == "all" else options.listed(text)


def _contestants(names: Sequence[str], assignments: Sequence[str]) -> list[Contestant]:
    """Finds explainers by name, each with its own settings."""
    from gflowbench.explainers.registry import named
    from gflowbench.protocol import Contestant

    wanted = named(names)
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
