"""``bulk``: explains very many predictions with a fitted explainer, on many processes, into Parquet files."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowexplainer.cli.console import one_line_errors, shows_bars, teller
from gflowexplainer.cli.options import Inputs, Json, Quiet, takes_options

if TYPE_CHECKING:
    from gflowexplainer.bulk import Source

_HOW, _CLUSTER, _OUT = "How", "Cluster", "Output"


@takes_options
def bulk(
    inputs: Inputs,
    explainer: Annotated[
        Path, typer.Option(help="Folder of a fitted explainer, as fit makes it.", rich_help_panel=_HOW)
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder of the run; the same command goes on where it stopped. Files go to explanations/ in it.",
            rich_help_panel=_OUT,
        ),
    ],
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Subgraphs to sample for each. (default: the explainer's)", rich_help_panel=_HOW),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that explain.", rich_help_panel=_CLUSTER)] = 2,
    gpus: Annotated[
        float, typer.Option(min=0, help="GPUs of each, which may be a share of one.", rich_help_panel=_CLUSTER)
    ] = 0.0,
    address: Annotated[
        str | None,
        typer.Option(
            help="A Ray cluster that runs already, as 'auto'. (default: one is started on this machine)",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    part_size: Annotated[int, typer.Option(min=1, help="Instances of a file.", rich_help_panel=_OUT)] = 256,
    top: Annotated[int, typer.Option(min=1, help="Subgraphs to store of each.", rich_help_panel=_OUT)] = 10,
    smallest: Annotated[
        float,
        typer.Option(min=0, max=1, help="Smallest probability of a node or an edge to store.", rich_help_panel=_OUT),
    ] = 1e-3,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Begin anew in --out: what an earlier run wrote is deleted.", rich_help_panel=_OUT
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
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
        from gflowexplainer.cli.inputs import read_inputs
        from gflowexplainer.report.run_folder import Run
        from gflowexplainer.storage.files import dumps

        device = "cuda" if gpus else "cpu"
        files: dict[str, Any] = {name: getattr(inputs, name) for name in ("weights", "data", "smiles")}
        found = replace(inputs, **{name: path and path.resolve() for name, path in files.items()})
        loaded = read_inputs(found, device=device, fitted=True)
        teller(quiet)(f"Explaining {len(loaded.places)} {loaded.level}s with {workers} workers")
        # Ray tells of lost workers on standard output, which belongs to the results.
        with redirect_stdout(sys.stderr):
            result = explain_in_bulk(
                explainer,
                partial(_load, found, device, str(Path.cwd())),
                loaded.places,
                out=out,
                workers=workers,
                gpus=gpus,
                part_size=part_size,
                num_samples=samples,
                top=top,
                smallest=smallest,
                address=address,
                overwrite=overwrite,
                progress=shows_bars(quiet),
            )
        results = vars(result) | {"folder": str(result.folder)}
        Run.open(out).write("results.json", dumps(results, indent=1))
        if as_json:
            typer.echo(dumps(results, indent=1))
        else:
            typer.echo(
                f"{result.instances} explanations, {result.explained} of them now, by {result.processes} processes in "
                f"{result.seconds:.1f} s: {out / 'explanations'}"
            )


def _load(inputs: Inputs, device: str, folder: str) -> Source:
    """Loads what is explained in a worker, which looks for the user's modules where the command was given."""
    from gflowexplainer.bulk import Source
    from gflowexplainer.cli.inputs import read_inputs

    if Path(folder).is_dir():
        os.chdir(folder)
    loaded = read_inputs(inputs, device=device, fitted=True)
    return Source(loaded.model, loaded.data, loaded.target)
