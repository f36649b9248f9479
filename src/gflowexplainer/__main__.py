"""Runs the command line: ``python -m gflowexplainer``."""

from gflowexplainer.cli import main

if __name__ == "__main__":
    main()
