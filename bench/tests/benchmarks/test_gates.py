"""The gates: what is prepared is read as it was, and the tables say which gates are met."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import gates
from benchmarks.gate_jobs import Job, Options, plan, run_job
from benchmarks.gate_problems import prepare, read, read_task, write_task
from benchmarks.gate_tables import differences, tables
from gflowbench.suites.logic_suite import make_logic_task


@pytest.mark.parametrize("name", ["and-far", "sum-graph", "distance"])
def test_a_task_is_read_as_it_was_written(name, tmp_path):
    task = make_logic_task(name, 3, 40)
    instances = task.instances()[:5]
    write_task(tmp_path / "task.safetensors", task, instances)
    again = read_task(tmp_path / "task.safetensors")
    assert (again.task, again.mode, again.num_layers) == (task.task, task.mode, task.num_layers)
    for old, new in zip(instances, again.splits["test"].tolist(), strict=True):
        first, second = (t.graphs[0 if t.task == "node" else i] for t, i in ((task, old), (again, new)))
        assert torch.equal(first.x, second.x)
        assert torch.equal(first.edge_index, second.edge_index)
        assert torch.equal(first.y, second.y)
        assert vars(task.truths[old]) == vars(again.truths[new])


def test_a_prepared_job_is_measured_without_training_again(tmp_path):
    job = Job("null", "random-weights", "gin", 0)
    score = prepare(tmp_path, job)
    assert prepare(tmp_path, job) == score
    assert len(read(tmp_path, job, 4).cases) == 4
    row = run_job(job, Options(tmp_path, {"max_updates": 2}, cases=4))
    assert row["cases"] == 4
    assert 0 <= row["holds"] <= 1


def test_what_fails_is_stored_and_ends_nothing_else(tmp_path, capsys):
    arguments = ["--gates", "null", "--tasks", "real", "--jobs", "1"]
    arguments += ["--prepared", str(tmp_path / "nothing"), "--out", str(tmp_path / "out")]
    assert gates.main(arguments) == 0
    assert "null.real.gin.0: `" in capsys.readouterr().out
    assert (tmp_path / "out" / "null.real.gin.0.json").is_file()


def test_tables_say_what_is_met_and_who_is_ahead():
    jobs = plan(["logic"], [0, 1], ["and-far"], ["gin"], [])
    row = {"auc": 0.95, "exact_parts": 1.0, "seconds": 1.0, "total_seconds": 2.0}
    rows = {job: {**row, "occlusion.auc": 0.97, "saliency.auc": 0.5, "integrated.auc": 0.5} for job in jobs}
    text = tables(rows, 3)
    assert "| logic: node AUC | 0.950 | 0.950 | mean 0.985, least 0.93 | NO |" in text
    assert "| logic: parts of and-far, count | 1.000 | 1.000 | least 0.8 | yes |" in text
    assert "| logic and-far gin | 0.950 | occlusion | 0.970 | -0.020 |" in text
    assert "3 jobs were not finished." in text
    before = {job: {**row, "auc": 0.9} for job in jobs}
    assert "| and-far gin | auc | 0.900 | 0.950 | +0.050 |" in differences(rows, before, "before")


def test_settings_are_read_as_numbers_where_they_are():
    assert [gates._setting(text)[1] for text in ("a=3", "a=.5", "a=search", "a=None")] == [3, 0.5, "search", None]
