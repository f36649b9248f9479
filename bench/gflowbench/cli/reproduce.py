"""``reproduce``: every table and figure of the paper, with a verdict for each claim."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import PROBLEM, console, one_line_errors, print_table, teller
from gflowexplainer.errors import ConfigError, GFlowExplainerError, one_of

if TYPE_CHECKING:
    from gflowbench.paper import Scope


def reproduce(
    name: Annotated[list[str], typer.Argument(metavar="NAME...", help="Experiments by name, 'all', or 'list'.")],
    fast: Annotated[
        bool, typer.Option("--fast", help="A small version of each: fewer seeds, instances and epochs.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds, counted from 0. (default: the paper's)")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder in which each experiment gets one of its own; a second run goes on where one stopped. "
            "(default: results, with --fast runs/reproduce-fast)"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute: 'cpu' or 'cuda'.")] = "cpu",
    jobs: Annotated[int, typer.Option(min=1, help="Processes that compute side by side, one thread each.")] = 1,
    cells_only: Annotated[
        bool, typer.Option("--cells-only", help="Compute and store, but write no tables and draw no figures.")
    ] = False,
    part: Annotated[
        str,
        typer.Option(
            metavar="K/N", help="Compute each N-th cell from the K-th on, as 2/4, and stop: one process each."
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON, not as tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    r"""Repeats experiments of the paper: prints paper, ours and verdicts, writes JSON, Markdown, LaTeX and figures.

    To copy:

      gflowexplainer reproduce list
      gflowexplainer reproduce cut-vertices dataset-table
      gflowexplainer reproduce all --fast
    """
    with one_line_errors(resumable=True):
        from gflowbench.paper import Scope
        from gflowbench.paper.run_experiment import base_folder
        from gflowbench.paper.side_by_side import reproduce_side_by_side

        wanted = _wanted(name)
        if not wanted:
            return _list(as_json)
        options.check_device(device)
        base = base_folder(fast) if out is None else out
        turn = _part(part)
        scope = Scope(fast=fast, num_seeds=seeds, device=device, gnns=base / "gnns")
        if jobs > 1:
            if turn is not None:
                raise ConfigError("'--part' is one of several processes; leave '--jobs' out, or '--part'.")
            reproduce_side_by_side(wanted, scope, base, jobs, quiet=quiet)
        found, failed = [], []
        for one in wanted:
            try:
                record = _run(one, scope, base / one, quiet=quiet, cells_only=cells_only, part=turn)
            except ConfigError:
                raise  # the same for all of them
            except GFlowExplainerError as error:
                failed.append(f"{one}: {error}")
            except Exception as error:
                teller(quiet)(traceback.format_exc().rstrip())
                failed.append(f"{one}: {type(error).__name__}: {error}")
            else:
                if record is not None:
                    found.append(record)
                    failed += [f"{one}: {line}" for line in record["failures"]]
                    if not as_json:
                        _show(record, base / one)
        if as_json:
            from gflowexplainer.storage.files import dumps

            typer.echo(dumps(found, indent=1))
        for line in failed:
            typer.echo(f"gflowexplainer: {line}", err=True)
        if failed:
            raise typer.Exit(PROBLEM)


def _run(
    name: str, scope: Scope, folder: Path, *, quiet: bool, cells_only: bool, part: tuple[int, int] | None
) -> dict[str, Any] | None:
    from gflowbench.paper import experiment, run

    tell = teller(quiet)
    tell(f"{name}: {folder}")
    return run(experiment(name), scope, folder, tell=tell, cells_only=cells_only, part=part)


def _wanted(words: list[str]) -> list[str]:
    """Names the experiments that are asked for; none of them for 'list'."""
    from gflowbench.paper import names

    if words == ["list"]:
        return []
    if words == ["all"]:
        return list(names())
    for word in words:
        one_of("name", word, (*names(), "all", "list"))
        if word in ("all", "list"):
            raise ConfigError(f"'{word}' stands alone: 'gflowexplainer reproduce {word}'.")
    return list(dict.fromkeys(words))


def _part(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    first, slash, last = text.partition("/")
    if not (slash and first.isdecimal() and last.isdecimal()):
        raise ConfigError(f"'--part' takes K/N, as 2/4 for the second of four parts (got {text!r}).")
    return int(first), int(last)


def _list(as_json: bool) -> None:
    """Prints every experiment with its title."""
    import json

    from gflowbench.paper import experiment, names
    from gflowexplainer.report.tables import Table

    titles = {name: experiment(name).title for name in names()}
    if as_json:
        typer.echo(json.dumps([{"name": name, "title": title} for name, title in titles.items()], indent=1))
    else:
        print_table(Table("Experiments", ("name", "what it repeats"), tuple(titles.items())))


def _show(record: dict[str, Any], folder: Path) -> None:
    """Prints tables and verdicts."""
    from rich.markup import escape

    from gflowbench.paper.run_experiment import tables_of

    typer.echo(f"{record['title']} ({'fast' if record['fast'] else 'full'} run)\n")
    for table in tables_of(record):
        print_table(table)
        typer.echo()
    for verdict in record["verdicts"]:
        claim, evidence = escape(verdict["claim"]), escape(verdict["evidence"])
        console().print(f"[bold]{verdict['verdict']}[/bold]: {claim} {evidence}", highlight=False)
    typer.echo(f"\nWritten: {folder}\n")
