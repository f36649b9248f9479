"""``explain``: explains predictions of a model and writes a report about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gflowexplainer.cli.console import one_line_errors
from gflowexplainer.cli.options import How, Inputs, Output, takes_options

_HOW, _OUT = "How", "Output"


@takes_options
def explain(
    inputs: Inputs,
    how: How,
    output: Output,
    explainer: Annotated[
        Path | None, typer.Option(help="Folder of a fitted explainer; its settings count.", rich_help_panel=_HOW)
    ] = None,
    fit: Annotated[
        bool,
        typer.Option(
            "--fit", help="Fit one explainer to all instances first, so that they learn from one another.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    certificate: Annotated[
        bool | None,
        typer.Option(help="Measure the exact distance to the target. (default: of few)", rich_help_panel=_HOW),
    ] = None,
    sentences: Annotated[
        bool,
        typer.Option(
            "--summary", help="Say of each what would change it and which features count.", rich_help_panel=_HOW
        ),
    ] = False,
    report: Annotated[bool, typer.Option(help="Whether to write report.html.", rich_help_panel=_OUT)] = True,
    figures: Annotated[
        bool, typer.Option("--figures", help="Write PNG and SVG figures too.", rich_help_panel=_OUT)
    ] = False,
) -> None:  # fmt: skip
    r"""Explains predictions by connected subgraphs: prints them, stores them, writes a report.

    To copy:

      gflowexplainer explain --dataset karate --index 28
      gflowexplainer explain --dataset karate --index 8,28 --fit --out runs/two

    With your own model (a function "build" in my_models.py), weights and graphs:

      gflowexplainer explain --model my_models:build --weights gnn.pt \
          --data graph.npz --index 3,14,15 --out runs/mine
      gflowexplainer explain --explainer runs/fitted --model my_models:build \
          --weights gnn.pt --data graphs.json --all --json
      gflowexplainer explain --model my_models:classifier --weights gnn.pt \
          --smiles molecules.csv --atoms C,N,O,Cl,S --max-nodes 4
      gflowexplainer explain --model my_models:recommender --data typed.npz \
          --edge-type user,likes,item --edge-label-index 0:4,3:9

    Graphs as JSON: "nodes" (names or number), "edges" (pairs), "features" (a list for each node), optional "undirected"
    (true), "labels" (of nodes) or "label" (of the graph); many graphs are a list. From Python, write
    gflowexplainer.sources.save_graphs("graphs.safetensors", data).
    """
    with one_line_errors(resumable=True):
        from gflowexplainer.cli.run import explain_in_folder

        explain_in_folder(
            inputs,
            how,
            output,
            explainer=explainer,
            fit=fit,
            certificate=certificate,
            sentences=sentences,
            report=report,
            figures=figures,
        )
