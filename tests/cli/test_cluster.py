"""Several processes from the command line: training by two of them, and explaining in bulk."""

import json
import os
import re
import subprocess
import sys

import pytest
from safetensors.torch import load_file

from gflowexplainer.inference.fitted_state import FILE
from gflowexplainer.training.checkpoint import CHECKPOINT, METRICS

NODE = ("--model", "my_models:build", "--weights", "node.pt", "--data", "graph.safetensors")
FEW = ("--preset", "context", "--max-nodes", "3", "--set", "num_contexts=4", "--set", "hidden=16")
PROGRAM = (sys.executable, "-m", "gflowexplainer")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_process_ends_the_others_and_torchrun_goes_on_with_it(workspace, invoke):
    pytest.importorskip("lightning_fabric")
    psutil = pytest.importorskip("psutil")
    words = ("fit", *NODE, "--index", "0-3", "--set", "epochs=40", *FEW)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*PROGRAM, *words, "--devices", "2", "--out", "run"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    said = []
    for line in process.stderr:
        said.append(line)
        if "update 4 of 40" in line:
            (other,) = psutil.Process(process.pid).children()
            other.kill()
            break
    out, err = process.communicate(timeout=200)
    text = "".join(said) + err
    assert process.returncode == 1, text
    assert "Traceback" not in text
    assert text.count("waits in vain for the others") == 1
    assert text.count("Fitting 4 nodes") == 1  # only the first process speaks
    assert out == ""
    assert (workspace / "run" / CHECKPOINT).is_file()
    assert not (workspace / "run" / FILE).exists()
    done = len((workspace / "run" / METRICS).read_text().splitlines())
    assert 1 <= done < 40  # an update that the others did not finish is not stored
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    resumed = subprocess.run(
        [*torchrun, "gflowexplainer", *words, "--out", "run", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["iterations"] == 40
    first = int(re.search(r"update (\d+) of 40", resumed.stderr).group(1))
    assert first > done  # what was done is not done again
    alone = invoke(*words, "--out", "alone", "--json")
    assert alone.exit_code == 0, alone.output
    curves = [
        [json.loads(line) for line in (workspace / run / METRICS).read_text().splitlines()] for run in ("run", "alone")
    ]
    for together, single in list(zip(*curves, strict=True))[:15]:  # later, rounding may have led to other choices
        assert together["loss"] == pytest.approx(single["loss"], rel=1e-3)
    fitted = [load_file(workspace / run / FILE) for run in ("run", "alone")]
    assert fitted[0].keys() == fitted[1].keys()


def test_wrong_uses_of_several_processes(workspace, invoke, monkeypatch):
    def said(*words):
        result = invoke("fit", *NODE, "--index", "0", "--out", "run", *words)
        assert result.exit_code == 2, result.output
        return result.output

    assert "--nodes 2' needs this command on every machine" in said("--nodes", "2")
    assert "'--device' names one device ('cpu:0')" in said("--devices", "2", "--device", "cpu:0")
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)
    assert "2 processes are to train" in said("--devices", "2")
    assert not (workspace / "run").exists()


def test_graphs_are_explained_in_bulk(workspace, invoke):
    pytest.importorskip("ray")
    graphs = ("--model", "my_models:graph_model", "--weights", "graph.pt", "--data", "graphs.safetensors", "--all")
    fitted = invoke("fit", *graphs, "--out", "fitted", "--set", "epochs=2", *FEW)
    assert fitted.exit_code == 0, fitted.output
    words = ("bulk", "--explainer", "fitted", *graphs, "--out", "all", "--workers", "1", "--part-size", "2", "--quiet")
    done = invoke(*words, "--json")
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)
    assert (results["instances"], results["explained"], results["processes"]) == (3, 3, 1)
    assert results == json.loads((workspace / "all" / "results.json").read_text())
    from gflowexplainer.bulk import read_rows

    rows = read_rows(workspace / "all").to_pylist()
    assert [row["instance"] for row in rows] == [0, 1, 2]
    explained = invoke("explain", "--explainer", "fitted", *graphs, "--json", "--no-report", "--quiet")
    for row, entry in zip(rows, json.loads(explained.stdout)["instances"], strict=True):
        assert row["class"] == entry["class"]
        assert [s["nodes"] for s in row["subgraphs"]] == [list(s["nodes"]) for s in entry["subgraphs"]]
    again = invoke(*words)
    assert again.exit_code == 0, again.output
    assert "3 explanations, 0 of them now" in again.output
    other = invoke(*words, "--top", "3")
    assert other.exit_code == 2
    assert "other inputs" in other.output


def test_bulk_needs_a_fitted_explainer(workspace, invoke):
    pytest.importorskip("ray")
    result = invoke("bulk", "--explainer", "nowhere", *NODE, "--all", "--out", "all")
    assert result.exit_code == 1
    assert "'nowhere' holds no fitted explainer" in result.output
