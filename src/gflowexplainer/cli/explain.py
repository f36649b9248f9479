"""``explain`` and ``demo``: explain predictions of a model and write a report about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gflowexplainer.cli.console import one_line_errors
from gflowexplainer.cli.options import How, Inputs, Output, Shown, takes_options


@takes_options
def explain(inputs: Inputs, how: How, output: Output, shown: Shown) -> None:
    r"""Explains predictions by connected subgraphs: prints them, stores them, writes a report.

    To copy:

      gflowexplainer explain --dataset karate --index 28
      gflowexplainer explain --dataset karate --index 0-33 --fit --out runs/all

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

        explain_in_folder("explain", inputs, how, output, shown)


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
        explain_in_folder("demo", inputs, how, replace(output, out=output.out or Path("runs/demo")), Shown())
