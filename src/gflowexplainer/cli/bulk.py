"""``bulk``: explains very many predictions with a fitted explainer, on many processes, into Parquet files."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gflowexplainer.cli.console import one_line_errors, print_json, tell_always, teller
from gflowexplainer.cli.options import HOW, OUT, Inputs, Json, Quiet, option, takes_options

if TYPE_CHECKING:
    from gflowexplainer.bulk import Source

_CLUSTER = "Cluster"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What workers do, and where: the arguments of ``explain_in_bulk`` by their names."""

    explainer: Path = option(HOW, "Folder of a fitted explainer, as fit makes it.", default=...)
    num_samples: int | None = option(
        HOW, "Subgraphs to sample for each. (default: the explainer's)", "--samples", min=1
    )
    workers: int = option(_CLUSTER, "Processes that explain.", default=2, min=1)
    gpus: float = option(_CLUSTER, "GPUs of each, which may be a share of one.", default=0.0, min=0)
    address: str | None = option(
        _CLUSTER, "A Ray cluster that runs already, as 'auto'. (default: one is started on this machine)"
    )
    part_size: int = option(OUT, "Instances of a file.", default=256, min=1)
    top: int = option(OUT, "Subgraphs to store of each.", default=10, min=1)
    smallest: float = option(OUT, "Smallest probability of a node or an edge to store.", default=1e-3, min=0, max=1)
    out: Path = option(
        OUT,
        "Folder of the run; the same command goes on where it stopped. Files go to explanations/ in it.",
        default=...,
    )
    overwrite: bool = option(
        OUT, "Begin anew in --out: what an earlier run wrote is deleted.", "--overwrite", default=False
    )


@takes_options
def bulk(inputs: Inputs, work: Work, as_json: Json = False, quiet: Quiet = False) -> None:
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
        from gflowexplainer.cli.inputs import read_inputs, untrained
        from gflowexplainer.errors import ConfigError
        from gflowexplainer.report.run_folder import Run
        from gflowexplainer.storage.files import dumps

        if inputs.edge_label_index is not None:
            raise ConfigError("'bulk' explains nodes and graphs. Explain links with: gflowexplainer explain")
        device = "cuda" if work.gpus else "cpu"
        files = {name: getattr(inputs, name) for name in ("weights", "data", "smiles")}
        found = replace(inputs, **{name: path and path.resolve() for name, path in files.items()})
        loaded = read_inputs(found, device=device, fitted=True)
        tell_always(untrained(inputs, loaded.model))
        teller(quiet)(f"Explaining {len(loaded.places)} {loaded.level}s with {work.workers} workers")
        load = partial(_load, found, device, str(Path.cwd()))
        # Ray tells of lost workers on standard output, which belongs to the results.
        with redirect_stdout(sys.stderr):
            result = explain_in_bulk(source=load, index=loaded.places, progress=not quiet, **vars(work))
        results = vars(result) | {"folder": str(result.folder)}
        Run.open(work.out).write("results.json", dumps(results, indent=1))
        if as_json:
            print_json(results)
        else:
            typer.echo(
                f"{result.instances} explanations, {result.explained} of them now, by {result.processes} processes in "
                f"{result.seconds:.1f} s: {work.out / 'explanations'}"
            )


def _load(inputs: Inputs, device: str, folder: str) -> Source:
    """Loads what is explained in a worker, which looks for the user's modules where the command was given."""
    from gflowexplainer.bulk import Source
    from gflowexplainer.cli.inputs import read_inputs

    if Path(folder).is_dir():
        os.chdir(folder)
    loaded = read_inputs(inputs, device=device, fitted=True)
    return Source(loaded.model, loaded.data, loaded.target)
