"""``fit``: fits an explainer to many instances of a model, in one process or in several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from gflowexplainer.cli.console import one_line_errors, print_json, shows_bars, tell_always, teller
from gflowexplainer.cli.options import HOW, How, Inputs, Output, option, takes_options
from gflowexplainer.cli.processes import is_first, together


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Where to train."""

    devices: int | None = option(
        HOW,
        "Processes that train together on this machine, one a device: they are started, unless torchrun has. "
        "(default: 1, or torchrun's)",
        min=1,
    )
    nodes: int = option(HOW, "Machines that train together, with torchrun on each.", default=1, min=1)


@takes_options
def fit(inputs: Inputs, how: How, output: Output, processes: Processes) -> None:
    r"""Fits an explainer to a model, once, so that it explains any instance of it at once.

    Interrupted (Ctrl-C), the same command goes on where it stopped and comes to the same explainer.

    To copy:

      gflowexplainer fit --dataset karate --index 0-15 --out runs/club
      gflowexplainer explain --explainer runs/club --dataset karate --index 28

    With your own model (a function "build" in my_models.py), weights and graphs:

      gflowexplainer fit --model my_models:build --weights gnn.pt \
          --data graph.npz --index 0-199 --max-nodes 8 --out runs/mine
      gflowexplainer explain --explainer runs/mine --model my_models:build \
          --weights gnn.pt --data graph.npz --index 42
      torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d \
          --rdzv-endpoint HOST:29500 -m gflowexplainer fit \
          --model my_models:build --weights gnn.pt --data graph.npz --all \
          --device cuda --devices 4 --nodes 2
    """
    with (
        one_line_errors(resumable=True),
        together(device=how.device, devices=processes.devices, nodes=processes.nodes) as fabric,
    ):
        from gflowexplainer.cli.inputs import read_inputs, untrained
        from gflowexplainer.cli.run import fit_in_folder, make_explainer, open_run
        from gflowexplainer.report.run_folder import FITTED, write_run_report
        from gflowexplainer.report.tables import Table, number

        quiet = output.quiet or not is_first()
        tell, algorithm = teller(quiet), make_explainer(how, inputs)
        device = how.device if fabric is None else str(fabric.device)
        loaded = read_inputs(inputs, device=device, seed=how.seed or 0, progress=shows_bars(quiet))
        if not is_first():
            # Which folder is the first process's business; that there is one, all must know.
            fit_in_folder(algorithm, loaded, output.out or Path("runs"), quiet, fabric)
            return
        tell_always(untrained(inputs, loaded.model))
        with open_run("fit", output, loaded, algorithm.settings.to_dict(), {**vars(inputs), **vars(how)}) as run:
            run.files.claim(*FITTED)
            tell(f"Fitting {loaded.sentence()}")
            fit_in_folder(algorithm, loaded, run.folder, quiet, fabric)
            curves = run.curves()
            results: dict[str, Any] = {
                "run": str(run.folder),
                "instances": len(loaded.places),
                "iterations": len(curves),
                "loss": curves[-1].get("loss") if curves else None,
                "seconds": sum(record.get("seconds", 0.0) for record in curves),
            }
            rows = (
                ("instances", str(results["instances"])),
                ("updates", str(results["iterations"])),
                ("loss of the last update", number(results["loss"])),
                ("seconds", number(results["seconds"], digits=1)),
            )
            run.write_results(results, [Table("Fit", ("what", "value"), rows)])
            report = write_run_report(run)
        if output.as_json:
            print_json(results)
            return
        typer.echo(
            f"Fitted to {results['instances']} instances in {results['iterations']} updates "
            f"({results['seconds']:.1f} s): {run.folder}"
        )
        typer.echo(f"Report: {report}")
        tell(f"Explain with it: gflowexplainer explain --explainer {run.folder} ...")
