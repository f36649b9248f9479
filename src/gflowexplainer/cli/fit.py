"""``fit``: trains one flow network on many instances of a model."""

from __future__ import annotations

from typing import Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, shows_bars, teller
from gflowexplainer.cli.running import begin_run, subject_words, train, write_run_report


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
    everything: options.Everything = False,
    target: options.Target = None,
    preset: options.Preset = None,
    max_nodes: options.MaxNodes = None,
    setting: options.Setting = None,
    seed: options.Seed = None,
    device: options.Device = "cpu",
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    r"""Fits an explainer to a model, once, so that it explains any instance of it at once.

    Interrupted (Ctrl-C), the same command goes on where it stopped and comes to the same explainer.

    To copy:

      gflowexplainer fit --dataset tree-cycles --all --out runs/cycles
      gflowexplainer fit --model my_models:build --weights gnn.pt \
          --data graph.npz --index 0-199 --max-nodes 8 --out runs/mine
      gflowexplainer explain --explainer runs/mine --model my_models:build \
          --weights gnn.pt --data graph.npz --index 42
    """
    with one_line_errors(resumable=True):
        from gflowexplainer.cli.asking import ask, explainer_of
        from gflowexplainer.evaluation.record import dumps
        from gflowexplainer.evaluation.tables import Table, number

        tell = teller(quiet)
        algorithm = explainer_of(
            preset=preset, setting=setting or [], max_nodes=max_nodes, seed=seed, num_hops=num_hops
        )
        asked = ask(**subject_words(context), progress=shows_bars(quiet))
        run = begin_run("fit", out, context, asked, algorithm.settings.to_dict())
        tell(f"Fitting {asked.sentence()}")
        train(algorithm, asked, run.folder, quiet)
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
