import json
import sys
from types import SimpleNamespace

import pytest

from gflowbench.paper import names


@pytest.fixture
def toys(monkeypatch):
    """Puts three toy experiments in the place of the real ones; 'second' fails where it is told to."""
    from functools import partial

    from gflowbench.paper import Experiment, Measurement, Outcome, Verdict
    from gflowbench.paper import experiments as registry_of_experiments
    from gflowexplainer.report.tables import Table

    wrong = {}

    def compute(name, number):
        if name in wrong:
            raise wrong[name]
        return number

    def plan(name, scope):
        seeds = scope.seeds(3)
        return [Measurement(f"seed {s}", {"seed": s}, partial(compute, name, s)) for s in seeds]

    def present(results):
        table = Table("Numbers", ("n", "ours"), (("sum", str(sum(results.values.values()))),))
        return Outcome([table], [Verdict("It [b]adds[/b] up.", "holds", "As seen.")])

    found = {name: f"toy_{name}" for name in ("first", "second", "third")}
    for name, module in found.items():
        one = Experiment(name, f"The {name}", partial(plan, name), present)
        monkeypatch.setitem(sys.modules, f"gflowbench.paper.{module}", SimpleNamespace(EXPERIMENT=one))
    monkeypatch.setattr(registry_of_experiments, "EXPERIMENTS", {n: f"{m}:EXPERIMENT" for n, m in found.items()})
    return wrong


def test_the_real_experiments_are_listed(workspace, invoke):
    shown = invoke("reproduce", "list")
    assert shown.exit_code == 0
    for name in names():
        assert name in shown.stdout
    listed = json.loads(invoke("reproduce", "list", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(names())


def test_a_run_prints_tables_and_verdicts_and_resumes(toys, workspace, invoke):
    result = invoke("reproduce", "first")
    assert result.exit_code == 0, result.output
    assert "Numbers" in result.stdout
    assert "holds: It [b]adds[/b] up. As seen." in result.stdout
    assert "[3/3] seed 2: " in result.stderr
    assert json.loads((workspace / "results" / "first" / "values.json").read_text())["seed 2"] == 2
    assert json.loads((workspace / "results" / "first" / "summary.json").read_text())["seeds_used"] == [0, 1, 2]
    again = invoke("reproduce", "first")
    assert again.stderr.count("stored") == 3
    assert again.stdout == result.stdout


@pytest.mark.parametrize("error", [ValueError("out of reach"), ImportError("no such thing")])
def test_the_failure_of_one_does_not_stop_the_others(toys, workspace, invoke, error):
    toys["second"] = error
    result = invoke("reproduce", "all", "--quiet")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("gflowexplainer: second: 3 of 3 steps failed")
    assert str(error) in line
    assert (workspace / "results" / "first" / "summary.json").is_file()
    assert (workspace / "results" / "third" / "summary.json").is_file()
    assert not (workspace / "results" / "second" / "summary.json").exists()


def test_jobs_compute_first_and_this_process_draws(toys, workspace, invoke, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "gflowbench.paper.side_by_side.reproduce_side_by_side",
        lambda names, scope, base, jobs, quiet: asked.append((names, scope.num_seeds, str(base), jobs, quiet)),
    )
    assert invoke("reproduce", "first", "third", "--jobs", 3, "--seeds", 2).exit_code == 0
    assert asked == [(["first", "third"], 2, "results", 3, False)]
    assert (workspace / "results" / "third" / "summary.json").is_file()


def test_cells_and_parts(toys, workspace, invoke):
    for part in ("1/2", "2/2"):
        assert invoke("reproduce", "first", "--part", part).exit_code == 0
    folder = workspace / "results" / "first"
    assert len(list((folder / "cells").iterdir())) == 3
    assert invoke("reproduce", "first", "--cells-only").exit_code == 0
    assert not (folder / "summary.json").exists()
    assert invoke("reproduce", "first").stderr.count("stored") == 3


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["cut-vertexes"], "Did you mean 'cut-vertices'?"),
        (["all", "cut-vertices"], "'all' stands alone"),
        (["cut-vertices", "list"], "'list' stands alone"),
        (["cut-vertices", "--part", "half"], "'--part' takes K/N"),
        (["cut-vertices", "--part", "3/2"], "'part' must be k/n"),
        (["cut-vertices", "--part", "1/2", "--jobs", "2"], "'--part' is one of several processes"),
        (["cut-vertices", "--device", "cdua"], "Did you mean 'cuda'?"),
    ],
)
def test_what_does_not_exist_is_answered_in_one_line(words, answer, workspace, invoke):
    result = invoke("reproduce", *words, "--quiet")
    assert result.exit_code == 2
    assert answer in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_real_experiment_end_to_end(workspace, invoke):
    result = invoke("reproduce", "dataset-table", "--fast")
    assert result.exit_code == 0, result.output
    assert "Dataset statistics" in result.stdout
    folder = workspace / "runs" / "reproduce-fast" / "dataset-table"
    assert "| Tree-Grid, edges | 3410 |" in (folder / "results.md").read_text()
