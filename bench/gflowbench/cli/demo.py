"""``demonstrate``: from nothing to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import PROBLEM, one_line_errors, shows_bars, teller


def demonstrate(
    out: Annotated[Path, typer.Option(help="Folder for data, GNNs, results and the report.")] = Path("runs/floors"),
    seed: Annotated[int, typer.Option(help="Fixes data, GNNs and explanations.")] = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """From nothing to a report: generates data, trains GNNs, explains them, scores the explanations.

    Tree-Cycles (nodes) and a small BA-2motifs (graphs), beside three trivial explainers and two of PyG.

    To copy:

      gflowexplainer demonstrate
      gflowexplainer demonstrate --out /tmp/demo --seed 1 --quiet
    """
    with one_line_errors(resumable=True):
        from gflowbench.cli.evaluate import show_record, write_record
        from gflowbench.demonstration import NUM_GRAPHS, PEERS
        from gflowbench.demonstration import demonstrate as run_demonstration
        from gflowexplainer import GFlowExplainer
        from gflowexplainer.report.run_folder import Run, write_run_report
        from gflowexplainer.storage.files import dumps

        tell = teller(quiet)
        settings = GFlowExplainer(seed=seed).settings.to_dict()
        run = Run.begin(out, "demo", {"seed": seed}, title="GFlowExplainer: demonstration", settings=settings)
        record = run_demonstration(run, seed=seed, tell=tell, progress=shows_bars(quiet))
        epochs = PEERS["gnnexplainer"]["epochs"]
        notes = [
            f"GNNExplainer was given {epochs} epochs only, to keep this short.",
            f"BA-2motifs has {NUM_GRAPHS} graphs here and 1000 in the paper, whose rows are of other data and GNNs.",
        ]
        write_record(record, run, notes)
        path = write_run_report(run)
        if as_json:
            typer.echo(dumps(record.to_dict() | {"notes": notes, "report": str(path)}, indent=1))
        else:
            show_record(record)
            for note in notes:
                typer.echo(note)
            typer.echo(f"Report: {path}")
        if any(cell.status == "failed" for cell in record.cells):
            raise typer.Exit(PROBLEM)
