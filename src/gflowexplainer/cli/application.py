"""The application: its commands and what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from inspect import cleandoc
from typing import Annotated, Any

import typer
from rich.markup import escape

from gflowexplainer.cli.bulk import bulk
from gflowexplainer.cli.doctor import doctor
from gflowexplainer.cli.explain import demo, explain
from gflowexplainer.cli.fit import fit
from gflowexplainer.cli.stored import motifs, report
from gflowexplainer.version import __version__

GROUP = "gflowexplainer.commands"
"""Entry points of this group are functions that become commands: those of ``gflowbench`` are."""
ABOUT = "Explains predictions of graph neural networks by connected subgraphs."

app = typer.Typer(
    name="gflowexplainer",
    help=ABOUT,
    epilog=(
        "Begin with: gflowexplainer demo. "
        "Results go to standard output, progress to standard error. "
        "Exit codes: 0, 1 if something went wrong, 2 for a wrong use, 130 after Ctrl-C. NO_COLOR=1 turns colours off."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _add(name: str, command: Callable[..., Any]) -> None:
    """Makes a function a command; brackets in its help are no markup."""
    app.command(name, help=escape(cleandoc(command.__doc__ or "")))(command)


_OWN = {command.__name__: command for command in (demo, fit, explain, bulk, report, motifs, doctor)}
for _name, _command in _OWN.items():
    _add(_name, _command)
for _entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
    if _entry.name not in _OWN:
        _add(_entry.name, _entry.load())


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback(help=ABOUT)
def entrance(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Reads what stands before the name of a command."""


def main() -> None:
    """Runs the command line."""
    app(prog_name="gflowexplainer")
