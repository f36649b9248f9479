"""``demo``: a first report, of a model that is trained on the karate club."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gflowexplainer.cli.console import one_line_errors
from gflowexplainer.cli.options import How, Inputs, Output, takes_options


@takes_options
def demo(how: How, output: Output) -> None:
    """Trains a small GNN on the karate club, explains four of its predictions, and writes a report. Needs no download.

    To copy:

      gflowexplainer demo
      gflowexplainer demo --out runs/other --seed 1 --quiet
    """
    with one_line_errors(resumable=True):
        from gflowexplainer.cli.run import explain_in_folder

        inputs = Inputs(dataset="karate", index="0,8,28,33")
        explain_in_folder(inputs, how, replace(output, out=output.out or Path("runs/demo")), kind="demo")
