"""What the command line says and where: results on standard output, the rest on standard error, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from gflowexplainer.errors import ConfigError, GFlowExplainerError

if TYPE_CHECKING:
    from rich.console import Console

    from gflowexplainer.report.tables import Table

PROBLEM, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes: something went wrong; a wrong use; Ctrl-C. A signal adds 128."""
_NO_MEMORY = "There is not enough memory. Explain fewer instances at once, or lower --max-nodes."
_NO_GPU_MEMORY = "The GPU has not enough memory. Use --device cpu, or explain fewer instances at once."


@contextmanager
def one_line_errors(*, resumable: bool = False) -> Iterator[None]:
    """Turns a mistake of the user into one line on standard error and an exit code.

    Args:
        resumable: Whether the same command goes on where it was interrupted; then Ctrl-C says which one that is.
    """
    from gflowexplainer.report.provenance import command_line
    from gflowexplainer.training.interrupts import Terminated, endings_interrupt

    try:
        with endings_interrupt():
            yield
    except GFlowExplainerError as error:
        fail(str(error), USAGE if isinstance(error, ConfigError) else PROBLEM)
    except (MemoryError, RuntimeError) as error:
        on_gpu = type(error).__name__ == "OutOfMemoryError"
        if not (on_gpu or isinstance(error, MemoryError) or "can't allocate memory" in str(error)):
            raise
        fail(_NO_GPU_MEMORY if on_gpu else _NO_MEMORY, PROBLEM)
    except KeyboardInterrupt as error:
        goes_on = f" What was done is kept; the same command goes on:\n  {command_line()}" if resumable else ""
        fail(f"interrupted.{goes_on}", 128 + error.number if isinstance(error, Terminated) else INTERRUPTED)


def fail(message: str, code: int) -> NoReturn:
    """Prints what is wrong and ends the command."""
    typer.echo(f"gflowexplainer: {message}", err=True)
    raise typer.Exit(code)


def teller(quiet: bool) -> Callable[[str], None]:
    """Returns what tells of progress, one line each, on standard error; nothing if ``quiet``."""
    return (lambda line: None) if quiet else (lambda line: typer.echo(line, err=True))


def tell_always(lines: Sequence[str]) -> None:
    """Says what nobody should miss, on standard error, where progress is not wanted either."""
    for line in lines:
        typer.echo(line, err=True)


def shows_bars(quiet: bool) -> bool:
    """Returns whether to draw progress bars: only for a person who looks on."""
    return not quiet and sys.stderr.isatty()


def print_json(results: Any) -> None:
    """Prints results for a program."""
    from gflowexplainer.storage.files import dumps

    typer.echo(dumps(results, indent=1))


def print_table(table: Table) -> None:
    """Prints a table on standard output."""
    console().print(table.to_rich())


def console() -> Console:
    """Makes a console on standard output that does not squeeze tables when it writes to a file."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160)
