import json
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv
from typer.testing import CliRunner

from gflowbench.datasets import Benchmark
from gflowbench.protocol import Loaded, Problem
from gflowbench.protocol import problem as real_problem
from gflowbench.protocol.code import cell_code
from gflowexplainer.cli.application import app
from gflowexplainer.errors import DatasetError
from gflowexplainer.report.provenance import code_digest

runner = CliRunner()


class Degree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = SimpleConv(aggr="sum")
        self.unused = nn.ModuleList([SimpleConv(), SimpleConv()])  # computation graphs of 3 hops

    def forward(self, x, edge_index):
        count = self.conv(x, edge_index)
        return torch.cat([torch.zeros_like(count), count], dim=1)


@pytest.fixture
def toy(monkeypatch):
    """Answers every dataset name with a small triangle on a path, and Tree-Grid with a missing file."""
    edges = torch.tensor([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]])
    graph = Data(
        x=torch.ones(5, 1),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        y=torch.tensor([1, 1, 1, 0, 0]),
        motif_id=torch.tensor([0, 0, 0, -1, -1]),
    )
    benchmark = Benchmark.from_graphs(graph, index=[0, 1], motif_size=3)

    def problem(dataset, gnn, **settings):
        real_problem(dataset, gnn)

        def load():
            if dataset == "tree-grid":
                raise DatasetError("'tree_grid.npz' was not found.")
            return Loaded(Degree(), benchmark, benchmark.index)

        return Problem(dataset, gnn, load, architecture="gcn")

    monkeypatch.setattr("gflowbench.protocol.problem", problem)


def invoke(*words):
    return runner.invoke(app, [str(word) for word in words])


def test_evaluate_prints_a_table_writes_files_and_resumes(toy, tmp_path):
    words = (
        "evaluate",
        "--dataset",
        "tree-cycles",
        "--explainer",
        "random,nothing",
        "--seeds",
        2,
        "--out",
        tmp_path,
    )
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert "Tree-Cycles" in result.stdout
    assert "GFlowExplainer (paper)" in result.stdout
    assert "stability over seeds" in result.stdout
    assert "[1/3] tree-cycles, published GNN, random, seed 0: ok own AUC" in result.stderr
    record = json.loads((tmp_path / "summary.json").read_text())
    assert "cells" not in record
    assert record["code"] == code_digest()
    assert record["code_of_cells"] == {name: cell_code(name) for name in ("random", "nothing")}
    assert {s["explainer"] for s in record["summaries"]} == {"random", "nothing"}
    assert "| nothing | 0.500 |" in (tmp_path / "results.md").read_text()
    assert r"\begin{tabular}" in (tmp_path / "results.tex").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "AUC, own motif, pooled" in page
    assert "no pictures here" in page
    again = invoke(*words)
    assert again.stderr.count("(stored)") == 3
    assert again.stdout == result.stdout


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--dataset", "tree-cycles", "--explainer", "randm"], "Did you mean 'random'?"),
        (["--dataset", "tree-cycle"], "Did you mean 'tree-cycles'?"),
        (["--dataset", "tree-cycles", "--gnn", "publishd"], "Did you mean 'published'?"),
        (["--dataset", "tree-cycles", "--set", "random.samples=3"], "does not take these settings"),
        (["--dataset", "tree-cycles", "--set", "random"], "takes EXPLAINER.NAME=VALUE"),
        (["--dataset", "tree-cycles", "--train-share", "2"], "'train_share' must lie between 0 and 1"),
        (["--dataset", "tree-cycles", "--device", "cdua"], "Did you mean 'cuda'?"),
    ],
)
def test_what_does_not_exist_is_answered_in_one_line(words, answer, tmp_path):
    result = invoke("evaluate", *words, "--out", tmp_path)
    assert result.exit_code == 2
    assert answer in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_datasets_counts(tmp_path):
    result = invoke("datasets", "--name", "tree-cycles", "--source", "generated", "--json")
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)
    assert found["name"] == "tree-cycles"
    assert found["classes"] == 2
    shown = invoke("datasets", "--name", "tree-cycles", "--source", "generated")
    assert "tree-cycles" in shown.stdout
    assert invoke("datasets", "--name", "tree-cycle").exit_code == 2


def test_all_explainers_but_those_that_do_not_fit(toy, tmp_path):
    words = ("--dataset", "tree-cycles", "--seeds", 3, "--out", tmp_path)
    result = invoke("evaluate", *words, "--explainers", "attention,everything")
    assert result.exit_code == 0, result.output
    line = "left out: attention on tree-cycles: it explains gat models only, and this is a gcn"
    assert line in result.stderr
    assert f"- {line}" in (tmp_path / "results.md").read_text()
    (left_out,) = json.loads((tmp_path / "summary.json").read_text())["left_out"]
    assert left_out["explainer"] == "attention"
    alone = invoke("evaluate", *words, "--explainer", "attention")
    assert alone.exit_code == 2
    assert "There is nothing to evaluate: attention: it explains gat models only" in alone.stderr


def test_a_first_look_is_marked_as_such(toy, tmp_path):
    words = ("evaluate", "--dataset", "tree-cycles", "--explainer", "random,nothing", "--jobs", 1, "--out", tmp_path)
    result = invoke(*words, "--seeds", 3, "--fast")
    assert result.exit_code == 0, result.output
    assert "Thinned, marked * above" in result.stdout
    assert "every 5th instance, 1 seed" in result.stdout
    text = (tmp_path / "results.md").read_text()
    assert "| nothing | 0.500* |" in text
    assert "| random | every 5th instance, 1 seed | Tree-Cycles (1) |" in text
    assert "| nothing | every 5th instance | Tree-Cycles (1) |" in text  # one seed is all it ever needs
    assert "Thinned, marked *" in (tmp_path / "report.html").read_text()
    assert invoke(*words, "--fast", "--whole").exit_code == 2


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "gflowbench", "--help"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in ("evaluate", "leaderboard", "reproduce", "demonstrate", "datasets"))
