import json

import pytest
import torch
import typer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from typer.testing import CliRunner

from gflowbench import demonstration
from gflowbench.cli.demo import demonstrate
from gflowbench.protocol import Loaded, Problem
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.report.run_folder import Run
from gflowexplainer.storage.files import file_name

app = typer.Typer()
app.command()(demonstrate)
app.callback()(lambda: None)


def exhibit(name, model, benchmark):
    loaded = Loaded(model, benchmark, benchmark.index, {"gnn_accuracies": {"test": 1.0}})
    return Problem(name, "trained", lambda: loaded)


@pytest.fixture
def small(monkeypatch, two_triangles, molecules, count_neighbors, mean_degree):
    """Two tasks with graphs that can be counted on two hands."""
    found = [exhibit("tree-cycles", count_neighbors, two_triangles), exhibit("ba-2motifs", mean_degree, molecules)]
    monkeypatch.setattr(demonstration, "exhibits", lambda folder, seed, progress: found)
    monkeypatch.setattr(demonstration, "PEERS", {"gnnexplainer": {"epochs": 2}})
    monkeypatch.setattr(demonstration, "OURS", {"max_nodes": 3})


def test_from_nothing_to_a_report(small, tmp_path):
    words = ["demonstrate", "--out", str(tmp_path / "demo"), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert {(s["dataset"], s["explainer"]) for s in record["summaries"]} == {
        (dataset, explainer)
        for dataset in ("tree-cycles", "ba-2motifs")
        for explainer in ("gflow", "random", "distance", "probability", "gnnexplainer")
    }
    assert (tmp_path / "demo" / "report.html").is_file()
    assert "GNNExplainer was given" in (tmp_path / "demo" / "results.md").read_text()
    cases = {case.name: case for case in Run.open(tmp_path / "demo").cases()}
    assert list(cases) == ["Tree-Cycles node 1", "Tree-Cycles node 3", *(f"BA-2motifs graph {i}" for i in range(3))]
    triangle = cases["Tree-Cycles node 1"]
    edges = triangle.explanation.edge_index.t()[triangle.truth].tolist()
    assert {tuple(sorted(edge)) for edge in edges} == {(0, 1), (0, 2), (1, 2)}
    assert cases["Tree-Cycles node 3"].truth is None  # it lies in no motif
    assert set(triangle.others) == {"gnnexplainer"}
    # The second time everything is there already.
    count = []
    handle = register_optimizer_step_pre_hook(lambda *_: count.append(1))
    again = CliRunner().invoke(app, words)
    handle.remove()
    assert not count
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["summaries"] == record["summaries"]


def test_scored_in_an_earlier_run_that_was_interrupted_before_the_explanations(small, tmp_path):
    words = ["demonstrate", "--out", str(tmp_path / "demo"), "--quiet"]
    assert CliRunner().invoke(app, words).exit_code == 0
    file = tmp_path / "demo" / "explanations" / f"{file_name('Tree-Cycles node 1')}.safetensors"
    before = SubgraphExplanation.load(file)
    file.unlink()
    assert CliRunner().invoke(app, words).exit_code == 0
    after = SubgraphExplanation.load(file)
    # It is explained in another batch now, which may change the last digits of masks and of what the model says.
    assert [found.nodes for found in after.subgraphs] == [found.nodes for found in before.subgraphs]
    torch.testing.assert_close(after.edge_mask, before.edge_mask, atol=1e-5, rtol=0)
