import json
import os
import re

import pytest
import torch

from gflowexplainer.cli.options import assignments, positions
from gflowexplainer.errors import ConfigError
from gflowexplainer.explainer import GFlowExplainer
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.sources import load_graphs, save_graphs
from gflowexplainer.testing import NodeModel, house, random_graph

NODE = ("--model", "my_models:build", "--weights", "node.pt", "--data", "graph.safetensors")
GRAPH = ("--model", "my_models:graph_model", "--weights", "graph.pt", "--data", "graphs.safetensors")
QUICK = ("--set", "epochs=4", "--set", "num_contexts=4", "--max-nodes", "3", "--quiet")


def test_explain_says_what_the_library_says(workspace, invoke):
    result = invoke("explain", *NODE, "--index", "3,5", "--certificate", "--json", "--out", "run", *QUICK)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found == json.loads((workspace / "run" / "results.json").read_text())
    (graph,) = load_graphs("graph.safetensors")
    algorithm = GFlowExplainer(max_nodes=3, epochs=4, num_contexts=4)
    wanted = algorithm.explain(NodeModel(seed=1), graph, [3, 5], progress=False)
    for entry, explanation in zip(found["instances"], wanted, strict=True):
        assert entry["name"] == f"node {explanation.explained_node}"
        assert [tuple(s["nodes"]) for s in entry["subgraphs"]] == [s.nodes for s in explanation.top(10)]
        assert entry["certificate"]["distance"] == pytest.approx(explanation.certificate.distance)
        assert entry["class"] == explanation.explained_class
        assert entry["answer"]["prediction"] in str(explanation)
        assert entry["prediction"] == pytest.approx(explanation.whole_prediction)
    for name in ("config.json", "environment.json", "results.md", "results.tex", "report.html"):
        assert (workspace / "run" / name).is_file()
    stored = SubgraphExplanation.load("run/explanations/node-3.safetensors")
    # Alone or among others, in another thread layout: the same but for the last digits.
    torch.testing.assert_close(stored.edge_mask, wanted[0].edge_mask, rtol=1e-3, atol=1e-6)


def test_a_table_and_the_path_of_the_report(workspace, invoke):
    result = invoke("explain", *GRAPH, "--all", "--figures", *QUICK)
    assert result.exit_code == 0, result.output
    assert "graph 2" in result.stdout
    (run,) = (workspace / "runs").iterdir()
    assert result.stdout.rstrip().endswith(f"Report: runs/{run.name}/report.html")
    assert {path.suffix for path in (run / "figures").iterdir()} == {".png", ".svg"}


def test_what_was_left_out_is_told(workspace, invoke):
    words = ("explain", *NODE, "--index", "3", *QUICK)
    whole = invoke(*words, "--out", "whole")
    assert "left out" not in whole.stdout
    cut = invoke(*words, "--set", "max_graph_nodes=3", "--out", "cut")
    assert cut.exit_code == 0, cut.output
    said = re.search(r"At least [0-9]+ nodes of the computation graph were left out", cut.stdout).group()
    for file in ("results.md", "results.json", "report.html"):
        assert said in (workspace / "cut" / file).read_text()


def test_stored_explanations_are_not_computed_again(workspace, invoke):
    words = ("explain", *NODE, "--index", "3-5", "--no-report", "--out", "run", *QUICK[:-1])
    first = invoke(*words)
    assert first.exit_code == 0, first.output
    folder = workspace / "run" / "explanations"
    (folder / "node-4.safetensors").unlink()
    for number in (3, 5):
        os.utime(folder / f"node-{number}.safetensors", (1, 1))  # as if it were old
    again = invoke(*words)
    assert [int((folder / f"node-{number}.safetensors").stat().st_mtime) for number in (3, 5)] == [1, 1]
    assert (folder / "node-4.safetensors").stat().st_mtime > 1
    assert "2 of 3 are stored already" in again.stderr
    assert again.stdout == first.stdout


def test_a_summary_is_only_another_way_to_show_a_run(workspace, invoke):
    words = ("explain", *NODE, "--index", "3,4", "--no-report", "--out", "run", *QUICK[:-1])
    summarized = invoke(*words, "--summary")
    assert summarized.exit_code == 0, summarized.output
    assert "Their features that count most" in summarized.stdout
    plain = invoke(*words)
    assert "2 of 2 are stored already" in plain.stderr
    assert "Their features that count most" not in plain.stdout
    again = invoke(*words, "--summary")
    assert "2 of 2 are stored already" in again.stderr
    assert again.stdout == summarized.stdout


def test_a_name_that_is_the_id_is_not_repeated(workspace, invoke):
    entry = {"nodes": ["0", "b", "2"], "edges": [[0, 1], [1, 2]], "features": [[1.0, 0, 0]] * 3}
    (workspace / "named.json").write_text(json.dumps(entry))
    words = ("--model", "my_models:build", "--weights", "node.pt", "--data", "named.json", "--index", "1")
    result = invoke("explain", *words, "--no-report", "--out", "run", "--set", "min_nodes=3", *QUICK)
    assert result.exit_code == 0, result.output
    assert "0, b (1), 2 " in result.stdout


def test_other_weights_in_the_same_file_are_noticed(workspace, invoke):
    words = ("explain", *NODE, "--index", "3", "--no-report", "--out", "run", *QUICK)
    assert invoke(*words).exit_code == 0
    torch.save(NodeModel(seed=9).state_dict(), "node.pt")
    result = invoke(*words)
    assert result.exit_code == 2
    assert "other inputs ('model' differs" in result.stderr


def test_fit_then_explain_an_unseen_node_as_the_library_does(workspace, invoke):
    fitted = invoke("fit", *NODE, "--index", "0-5", "--out", "fitted", "--preset", "context", *QUICK, "--json")
    assert fitted.exit_code == 0, fitted.output
    record = json.loads(fitted.stdout)
    assert record["iterations"] == 4
    assert len((workspace / "fitted" / "metrics.jsonl").read_text().splitlines()) == 4
    words = ("explain", *NODE, "--index", "9", "--explainer", "fitted", "--samples", "16")
    result = invoke(*words, "--json", "--quiet", "--no-report")
    assert result.exit_code == 0, result.output
    (entry,) = json.loads(result.stdout)["instances"]
    assert entry["num_samples"] == 16
    (graph,) = load_graphs("graph.safetensors")
    algorithm = GFlowExplainer(preset="context", max_nodes=3, epochs=4, num_contexts=4, num_samples=16)
    algorithm.fit(NodeModel(seed=1), graph, range(6), progress=False)
    (wanted,) = algorithm.explain(NodeModel(seed=1), graph, [9], progress=False)
    assert [tuple(s["nodes"]) for s in entry["subgraphs"]] == [s.nodes for s in wanted.top(10)]


def test_explain_fits_together_and_shows_curves(workspace, invoke):
    result = invoke("explain", *GRAPH, "--fit", "--out", "run", "--preset", "context", *QUICK)
    assert result.exit_code == 0, result.output
    assert len((workspace / "run" / "metrics.jsonl").read_text().splitlines()) == 4
    assert GFlowExplainer.load("run").is_fitted


@pytest.mark.parametrize(("target", "classes"), [("2", [2, 2]), ("0,1", [0, 1]), ("labels", [2, 0])])
def test_targets(workspace, invoke, target, classes):
    words = (
        "explain",
        *NODE[:4],
        "--data",
        "graph.json",
        "--index",
        "2,0",
        "--target",
        target,
        "--json",
        "--no-report",
    )
    result = invoke(*words, *QUICK)
    assert result.exit_code == 0, result.output
    assert [entry["class"] for entry in json.loads(result.stdout)["instances"]] == classes


def test_names_of_nodes_are_shown_and_do_nothing(workspace, invoke):
    result = invoke("explain", *NODE[:4], "--data", "graph.json", "--all", "--out", "run", *QUICK)
    assert result.exit_code == 0, result.output
    page = (workspace / "run" / "report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "alert(1)" in page


def test_regression_with_edge_features(workspace, invoke):
    graph = house()
    graph.edge_attr = torch.ones(graph.edge_index.size(1), 2)
    save_graphs("edges.safetensors", [graph, graph])
    words = ("--model", "my_models:edge_model", "--data", "edges.safetensors", "--mode", "regression")
    result = invoke("explain", *words, "--json", *QUICK)
    assert result.exit_code == 0, result.output
    assert [entry["class"] for entry in json.loads(result.stdout)["instances"]] == [None, None]


def test_molecules_for_a_model_of_the_users_own(workspace, invoke):
    pytest.importorskip("rdkit")
    (workspace / "molecules.csv").write_text("smiles\nCCO\nCC(=O)N\n")
    words = ("--model", "my_models:graph_model", "--smiles", "molecules.csv", "--atoms", "C,N,O")
    result = invoke("explain", *words, "--out", "run", *QUICK)
    assert result.exit_code == 0, result.output
    assert "O2" in result.stdout or "C0" in result.stdout
    assert (workspace / "run" / "report.html").is_file()


def test_a_report_again_and_beside_another_run(workspace, invoke):
    words = ("explain", *NODE, "--index", "3,5", *QUICK)
    assert invoke(*words, "--out", "one", "--no-report").exit_code == 0
    assert invoke(*words, "--out", "two", "--seed", "1").exit_code == 0
    result = invoke("report", "one", "two", "--title", "Both", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == "one/report.html"
    page = (workspace / "one" / "report.html").read_text()
    assert "Both" in page
    assert '"two"' in page
    assert invoke("explain", *GRAPH, *QUICK, "--out", "three").exit_code == 0
    other = invoke("report", "one", "three")
    assert other.exit_code == 2
    assert "Compare runs of the same instances" in other.stderr
    assert invoke("fit", *NODE, "--index", "3", "--out", "fitted", "--preset", "context", *QUICK).exit_code == 0
    page = workspace / "fitted" / "report.html"
    page.unlink()  # written by fit
    assert invoke("report", "fitted").stdout.strip() == "fitted/report.html"
    assert "no pictures here" in page.read_text()
    for name in ("metrics.jsonl", "tables.json"):  # as if it had just begun
        (workspace / "fitted" / name).unlink()
    nothing = invoke("report", "fitted")
    assert nothing.exit_code == 2
    assert "holds nothing to show yet" in nothing.stderr


def test_words_that_name_many(workspace):
    assert positions(" 5 , 3-4, 3") == [5, 3, 4]
    assert positions("7-7") == [7]
    words = ["beta=50", "reward=prediction", "node_identities=true", "model_embeddings=False", "epsilon=1e-2"]
    wanted = {"beta": 50, "reward": "prediction", "node_identities": True, "model_embeddings": False, "epsilon": 0.01}
    assert assignments(words) == wanted
    with pytest.raises(ConfigError, match="twice"):
        assignments(["beta=1", "beta=2"])


def test_a_network_without_weights_and_one_that_ends_in_an_embedding_are_doubted(workspace, invoke):
    graph = random_graph(120, 0.02)
    graph.y = torch.arange(120) % 2
    save_graphs("labelled.safetensors", graph)
    (workspace / "wide.py").write_text(
        "from gflowexplainer.testing import NodeModel\nbuild = lambda: NodeModel(3, 9)\n"
    )
    words = ("--data", "labelled.safetensors", "--index", "3", "--no-report", *QUICK)
    plain = invoke("explain", *NODE[:4], *words)
    assert plain.exit_code == 0, plain.output
    assert "No --weights" not in plain.output
    assert "embedding" not in plain.output
    result = invoke("explain", "--model", "wide:build", *words, "--json")
    assert result.exit_code == 0, result.output
    assert "No --weights are given, so NodeModel is explained as 'wide:build' makes it" in result.stderr
    assert "returns 9 columns, but 'y' knows 2 classes" in "".join(json.loads(result.stdout)["warnings"])


@pytest.mark.parametrize("name", ["edge_weight", "x"])
def test_a_data_file_that_has_changed_is_noticed(workspace, invoke, name):
    (graph,) = load_graphs("graph.safetensors")
    graph.edge_weight = torch.ones(graph.edge_index.size(1))
    save_graphs("weighted.safetensors", graph)
    model = ("--model", "my_models:build", "--weights", "node.pt", "--data", "weighted.safetensors")
    words = ("explain", *model, "--index", "3", "--no-report", "--json", "--out", "run", *QUICK)
    before = json.loads(invoke(*words).stdout)["instances"][0]["prediction"]
    graph[name] = 3 * graph[name]
    save_graphs("weighted.safetensors", graph)
    result = invoke(*words)
    assert result.exit_code == 2
    assert f"other inputs ('{name}' differs" in result.stderr
    again = invoke(*words, "--overwrite")
    assert again.exit_code == 0, again.output
    after = json.loads(again.stdout)["instances"][0]["prediction"]
    arguments = (graph.x, graph.edge_index, graph.edge_weight)
    truth = NodeModel(seed=1).eval()(*arguments)[3].softmax(dim=0).tolist()
    assert after == pytest.approx(truth, abs=1e-6)
    assert after != pytest.approx(before, abs=1e-3)


def test_an_explainer_that_was_fitted_again_is_noticed(workspace, invoke):
    fit = ("fit", *NODE, "--index", "0-5", "--out", "fitted", *QUICK)
    assert invoke(*fit).exit_code == 0
    words = ("explain", *NODE, "--index", "9", "--explainer", "fitted", "--no-report", "--out", "run")
    assert invoke(*words).exit_code == 0
    refused = invoke(*fit, "--seed", "5")
    assert refused.exit_code == 2, refused.output
    assert "seed" in refused.stderr
    assert invoke(*fit, "--seed", "5", "--overwrite").exit_code == 0
    result = invoke(*words)
    assert result.exit_code == 2
    assert "'explainer' differs" in result.stderr


def test_a_busy_machine_is_told_of_once(workspace, invoke, monkeypatch):
    words = ("explain", *NODE, "--index", "3", "--no-report", "--max-nodes", "2")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    for load, said in ((1e6, 1), (0.0, 0)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, load, load))
        assert invoke(*words).stderr.count("This machine is busy") == said
