import json

GRAPH = ("--model", "my_models:graph_model", "--weights", "graph.pt", "--data", "graphs.safetensors")
QUICK = ("--set", "epochs=4", "--set", "num_contexts=4", "--max-nodes", "3", "--quiet")


def test_a_catalogue_of_a_run_and_a_summary_of_each(workspace, invoke):
    result = invoke("explain", *GRAPH, "--all", "--out", "run", "--summary", *QUICK)
    assert result.exit_code == 0, result.output
    assert "The model says class" in result.stdout
    stored = json.loads((workspace / "run" / "results.json").read_text())
    assert all(entry["summary"]["sentences"] for entry in stored["instances"])
    result = invoke("motifs", "run", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == json.loads((workspace / "run" / "motifs.json").read_text())
    assert found["motifs"]
    assert "Comparing 3 explanations" in result.stderr
    assert invoke("motifs", "run", "--json", "--quiet").stderr == ""
    assert (workspace / "run" / "motifs.html").read_text().startswith("<!doctype html>")


def test_a_folder_without_a_run_says_so(workspace, invoke):
    result = invoke("motifs", "nowhere")
    assert result.exit_code in (1, 2)
    assert len(result.stderr.strip().splitlines()) == 1
