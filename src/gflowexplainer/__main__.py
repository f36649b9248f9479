"""Runs the command line: ``python -m gflowexplainer``."""

import sys

try:
    from gflowexplainer.cli import main
except ImportError as error:
    if error.name not in {"typer", "rich"}:
        raise
    sys.exit(f"The command line needs '{error.name}'. Install it with: pip install 'gflowexplainer[evaluation]'")

if __name__ == "__main__":
    main()
