"""The way in: says what to install where the command line's own packages are missing."""

import sys


def main() -> None:
    """Runs the command line."""
    try:
        from gflowexplainer.cli.application import app
    except ImportError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit(f"The command line needs '{error.name}'. Install it with: pip install \"gflowexplainer[cli]\"")
    app(prog_name="gflowexplainer")
