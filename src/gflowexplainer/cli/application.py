"""The application: its commands and what they have in common."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from gflowexplainer.cli.bulk import bulk
from gflowexplainer.cli.demo import demo
from gflowexplainer.cli.doctor import doctor
from gflowexplainer.cli.explain import explain
from gflowexplainer.cli.fit import fit
from gflowexplainer.cli.motifs import motifs
from gflowexplainer.cli.report import report
from gflowexplainer.version import __version__

app = typer.Typer(
    name="gflowexplainer",
    help="Explains predictions of graph neural networks by connected subgraphs.",
    epilog=(
        "Begin with: gflowexplainer demo. "
        "Results go to standard output, progress to standard error. "
        "Exit codes: 0, 1 if something went wrong, 2 for a wrong use, 130 after Ctrl-C. NO_COLOR=1 turns colours off."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
GROUP = "gflowexplainer.commands"
"""Entry points of this group are functions that become commands: those of ``gflowbench`` are."""

_OWN = (demo, fit, explain, bulk, report, motifs, doctor)
for _command in _OWN:
    app.command()(_command)
for _entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
    if _entry.name not in {command.__name__ for command in _OWN}:
        app.command(_entry.name)(_entry.load())


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def entrance(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Explains predictions of graph neural networks by connected subgraphs."""
