"""``fit``: trains one flow network on many instances of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, shows_bars, teller
from gflowexplainer.cli.processes import is_first, together
from gflowexplainer.cli.runs import begin_run, fit_in_folder, subject_words, write_run_report


def fit(
    context: typer.Context,
    model: options.Model = None,
    weights: options.Weights = None,
    mode: options.Mode = None,
    task_level: options.TaskLevel = None,
    return_type: options.ReturnType = None,
    num_hops: options.NumHops = None,
    data: options.Data = None,
    smiles: options.Smiles = None,
    smiles_column: options.SmilesColumn = "smiles",
    atoms: options.Atoms = None,
    dataset: options.Dataset = None,
    gnn: options.Gnn = None,
    index: options.Index = None,
    everything: options.AllInstances = False,
    target: options.ExplainedClass = None,
    preset: options.Preset = None,
    max_nodes: options.MaxNodes = None,
    setting: options.Setting = None,
    inference: options.Inference = None,
    seed: options.Seed = None,
    device: options.Device = "cpu",
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that train together on this machine, one a device: they are started, unless torchrun has. "
            "(default: 1, or torchrun's)",
            rich_help_panel="How",
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=1, help="Machines that train together, with torchrun on each.", rich_help_panel="How")
    ] = 1,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
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
    with one_line_errors(resumable=True), together(device=device, devices=devices, nodes=nodes) as fabric:
        from gflowexplainer.cli.command_inputs import explainer_of, read_inputs
        from gflowexplainer.report.tables import Table, number
        from gflowexplainer.storage.files import dumps

        quiet = quiet or not is_first()
        tell = teller(quiet)
        more = {} if inference is None else {"inference": inference}
        algorithm = explainer_of(
            preset=preset, setting=setting or [], max_nodes=max_nodes, seed=seed, num_hops=num_hops, **more
        )
        words = subject_words(context)
        if fabric is not None:
            words["device"] = str(fabric.device)
        asked = read_inputs(**words, progress=shows_bars(quiet))
        if not is_first():
            # Which folder is the first process's business; that there is one, all must know.
            fit_in_folder(algorithm, asked, out or Path("runs"), quiet, fabric)
            return
        run = begin_run("fit", out, context, asked, algorithm.settings.to_dict())
        tell(f"Fitting {asked.sentence()}")
        fit_in_folder(algorithm, asked, run.folder, quiet, fabric)
        curves = run.curves()
        results: dict[str, Any] = {
            "run": str(run.folder),
            "instances": len(asked.index),
            "iterations": len(curves),
            "loss": curves[-1]["loss"] if curves else None,
            "seconds": sum(record.get("seconds", 0.0) for record in curves),
        }
        rows = (
            ("instances", str(len(asked.index))),
            ("updates", str(len(curves))),
            ("loss of the last update", number(results["loss"])),
            ("seconds", number(results["seconds"], digits=1)),
        )
        run.write_results(results, [Table("Fit", ("what", "value"), rows)])
        report = write_run_report(run)
        if as_json:
            typer.echo(dumps(results, indent=1))
            return
        typer.echo(
            f"Fitted to {results['instances']} instances in {results['iterations']} updates "
            f"({results['seconds']:.1f} s): {run.folder}"
        )
        typer.echo(f"Report: {report}")
        tell(f"Explain with it: gflowexplainer explain --explainer {run.folder} ...")
