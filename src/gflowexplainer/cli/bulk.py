"""``bulk``: explains very many predictions with a fitted explainer, on many processes, into Parquet files."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, shows_bars, teller

if TYPE_CHECKING:
    from gflowexplainer.bulk import Source


def bulk(
    context: typer.Context,
    explainer: Annotated[
        Path, typer.Option(help="Folder of a fitted explainer, as fit makes it.", rich_help_panel="How")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder of the run; the same command goes on where it stopped. Files go to explanations/ in it.",
            rich_help_panel="Output",
        ),
    ],
    model: options.Model = None,
    weights: options.Weights = None,
    data: options.Data = None,
    smiles: options.Smiles = None,
    smiles_column: options.SmilesColumn = "smiles",
    atoms: options.Atoms = None,
    dataset: options.Dataset = None,
    gnn: options.Gnn = None,
    index: options.Index = None,
    everything: options.AllInstances = False,
    target: options.ExplainedClass = None,
    num_samples: Annotated[
        int | None,
        typer.Option(min=1, help="Subgraphs to sample for each. (default: the explainer's)", rich_help_panel="How"),
    ] = None,
    weighting: Annotated[
        str | None, typer.Option(help="'policy' or 'reward'. (default: the explainer's)", rich_help_panel="How")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that explain.", rich_help_panel="Cluster")] = 2,
    gpus: Annotated[
        float, typer.Option(min=0, help="GPUs of each, which may be a share of one.", rich_help_panel="Cluster")
    ] = 0.0,
    address: Annotated[
        str | None,
        typer.Option(
            help="A Ray cluster that runs already, as 'auto'. (default: one is started on this machine)",
            rich_help_panel="Cluster",
        ),
    ] = None,
    part_size: Annotated[int, typer.Option(min=1, help="Instances of a file.", rich_help_panel="Output")] = 256,
    top: Annotated[int, typer.Option(min=1, help="Subgraphs to store of each.", rich_help_panel="Output")] = 10,
    smallest: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Smallest probability of a node or an edge to store.", rich_help_panel="Output"
        ),
    ] = 1e-3,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    r"""Explains very many predictions, each exactly once, on many processes or machines.

    A worker may be killed and the command interrupted: the same command goes on, and nothing is lost or doubled.

    Needs Ray and pyarrow: pip install "gflowexplainer[ray]".

    To copy:

      gflowexplainer fit --dataset karate --index 0-15 --out runs/club
      gflowexplainer bulk --explainer runs/club --dataset karate --all \
          --workers 1 --out runs/everything

    With your own model (a function "build" in my_models.py), weights and graphs:

      gflowexplainer bulk --explainer runs/mine --model my_models:build \
          --weights gnn.pt --data graph.npz --all --out runs/all \
          --workers 64 --gpus 0.25 --address auto
    """
    with one_line_errors(resumable=True):
        from gflowexplainer.bulk import explain_in_bulk
        from gflowexplainer.errors import CheckpointError
        from gflowexplainer.explainer import GFlowExplainer
        from gflowexplainer.explanation.ranked_subgraphs import counted
        from gflowexplainer.inference.explainer_file import FILE
        from gflowexplainer.storage.files import dumps, write_json

        if not (explainer / FILE).is_file():
            raise CheckpointError(f"'{explainer}' holds no fitted explainer. Make one: gflowexplainer fit --out ...")
        fitted = GFlowExplainer.load(explainer)._fitted
        assert fitted is not None
        names = ("model", "weights", "data", "smiles", "smiles_column", "atoms", "dataset", "gnn")
        words = {name: context.params[name] for name in (*names, "index", "everything", "target")}
        words |= {"device": "cuda" if gpus else "cpu", "fitted": fitted.config}
        asked = _read_inputs(words)
        teller(quiet)(f"Explaining {counted(len(asked.index), asked.level)} with {counted(workers, 'worker')}")
        # Ray tells of lost workers on standard output, which belongs to the results.
        with redirect_stdout(sys.stderr):
            result = explain_in_bulk(
                explainer,
                partial(_load, {name: _absolute(value) for name, value in words.items()}, str(Path.cwd())),
                asked.index,
                out=out,
                workers=workers,
                gpus=gpus,
                part_size=part_size,
                num_samples=num_samples,
                weighting=weighting,
                top=top,
                smallest=smallest,
                address=address,
                overwrite=overwrite,
                progress=shows_bars(quiet),
            )
        results = vars(result) | {"folder": str(result.folder)}
        write_json(out / "results.json", results)
        if as_json:
            typer.echo(dumps(results, indent=1))
        else:
            typer.echo(
                f"{counted(result.instances, 'explanation')}, {result.explained} of them now, by "
                f"{counted(result.processes, 'process', 'processes')} in {result.seconds:.1f} s: {out / 'explanations'}"
            )


def _read_inputs(words: dict[str, Any]) -> Any:
    """Loads what the options name."""
    from gflowexplainer.cli.command_inputs import read_inputs

    return read_inputs(**words, mode=None, task_level=None, return_type=None, seed=None, progress=False)


def _load(words: dict[str, Any], folder: str) -> Source:
    """Loads it in a worker, which looks for the user's modules where the command was given."""
    from gflowexplainer.bulk import Source

    if Path(folder).is_dir():
        os.chdir(folder)
    asked = _read_inputs(words)
    return Source(asked.model, asked.data, asked.target)


def _absolute(value: Any) -> Any:
    """Names files so that a worker finds them from wherever it runs."""
    return value.resolve() if isinstance(value, Path) else value
