"""The command line. Each command reads its words, calls the library, and shows what came back."""

from gflowexplainer.cli.application import main

__all__ = ["main"]
