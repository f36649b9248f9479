"""Words of the command line that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from faults.cases import Case
from gflowexplainer.cli.application import app
from gflowexplainer.errors import GFlowExplainerError
from gflowexplainer.sources import save_graphs
from gflowexplainer.testing import random_graph


def bad_words(here: Path) -> Iterator[Case]:
    """Commands in the working directory ``here``."""
    save_graphs(here / "ten.safetensors", random_graph(10))
    start = ["explain", "--model", "gflowexplainer.testing:NodeModel"]
    usual = [*start, "--data", "ten.safetensors"]
    words: list[list[str]] = [
        ["explain"],
        [*usual],
        [*usual, "--index", "99"],
        [*usual, "--index", "-1"],
        [*usual, "--index", "a"],
        [*usual, "--index", ""],
        [*usual, "--index", "3-1"],
        [*usual, "--index", "3", "--all"],
        [*usual, "--index", "3", "--max-nodes", "0"],
        [*usual, "--index", "3", "--set", "beta"],
        [*usual, "--index", "3", "--set", "beta=x"],
        [*usual, "--index", "3", "--set", "no=1"],
        [*usual, "--index", "3", "--preset", "no"],
        [*usual, "--index", "3", "--device", "tpu"],
        [*usual, "--index", "3", "--target", "x"],
        [*usual, "--index", "3", "--target", "99"],
        [*usual, "--index", "3", "--num-hops", "-1"],
        [*usual, "--index", "3", "--mode", "x"],
        [*usual, "--index", "3", "--task-level", "edge"],
        [*usual, "--index", "3", "--return-type", "probs"],
        [*usual, "--index", "3", "--out", "/proc/nowhere"],
        [*usual, "--index", "3", "--out", "n" * 300],
        [*usual, "--index", "3", "--explainer", "nowhere"],
        [*usual, "--index", "3", "--weights", "nowhere.pt"],
        [*start, "--data", "nowhere.npz", "--index", "3"],
        [*start, "--smiles", "nowhere.csv"],
        ["explain", "--model", "nowhere:build", "--data", "ten.safetensors", "--index", "3"],
        ["fit", "--model", "gflowexplainer.testing:NodeModel"],
        ["report", "nowhere"],
        ["bulk", "--explainer", "nowhere", "--out", "x"],
        ["nothing"],
        ["explain", "--no-such-option"],
    ]
    for line in words:
        yield " ".join(line)[:80], lambda w=line: _command(w), None


class _Said(GFlowExplainerError):
    """A command said in one line what is wrong."""


def _command(words: list[str]) -> object:
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code in (1, 2) and "Traceback" not in result.output:
        raise _Said(result.output)
    return result.exit_code
