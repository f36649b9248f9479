from functools import partial

import pytest
import torch

from gflowbench.metrics import MetricSettings
from gflowbench.paper import Contest, Measurement, record_of
from gflowbench.paper.table_datasets import count
from gflowbench.protocol import Contestant, Problem, ProtocolSettings, evaluate
from gflowbench.protocol.problems import Loaded


def quiet(line):
    pass


@pytest.fixture
def counting():
    calls = []

    def compute():
        calls.append(1)
        return {"pair": (1, 2), "tensor": torch.tensor(0.5), "nothing": float("nan")}

    return calls, compute


def test_a_value_is_computed_once_and_is_the_same_when_stored(tmp_path, counting):
    calls, compute = counting
    step = Measurement("a step", {"seed": 0}, compute)
    fresh, stored = step.finish(tmp_path, quiet), step.finish(tmp_path, quiet)
    assert fresh.value == stored.value == {"pair": [1, 2], "tensor": 0.5, "nothing": None}
    assert (len(calls), stored.how) == (1, "stored")
    assert fresh.how.endswith(" s")
    assert fresh.origins == stored.origins
    assert set(fresh.origins[0]) == {"created", "code", "versions", "device", "seconds"}
    assert fresh.seeds == stored.seeds == [0]


def test_other_settings_and_other_names_are_other_values(tmp_path, counting):
    calls, compute = counting
    for name, seed in (("a step", 0), ("a step", 1), ("a-step", 0)):
        Measurement(name, {"seed": seed}, compute).finish(tmp_path, quiet)
    assert len(calls) == 3
    assert len(list((tmp_path / "cells").iterdir())) == 3


def test_other_code_is_another_value(tmp_path, counting):
    paths = {Measurement("a step", {}, compute).path(tmp_path) for compute in (counting[1], count, partial(count, "x"))}
    assert len(paths) == 2


def test_names_of_files_are_safe(tmp_path, counting):
    step = Measurement("../../a/b: Z(v0) ü" + "x" * 300, {}, counting[1])
    path = step.path(tmp_path)
    assert path.parent == tmp_path / "cells"
    assert len(path.name) < 120
    step.finish(tmp_path, quiet)
    assert path.is_file()


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"format": "gflowexplainer-cell-1"}', '{"format": "other", "value": 1}']
)
def test_a_damaged_cell_is_computed_again(tmp_path, counting, content):
    calls, compute = counting
    step = Measurement("a step", {}, compute)
    step.finish(tmp_path, quiet)
    step.path(tmp_path).write_text(content)
    assert step.finish(tmp_path, quiet).value["pair"] == [1, 2]
    assert len(calls) == 2


def test_a_failure_leaves_no_file(tmp_path):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Measurement("a step", {}, fail).finish(tmp_path, quiet)
    assert not list(tmp_path.rglob("*.json"))


def test_a_contest_is_the_protocol_and_its_record_comes_back(tmp_path, triangle, count_neighbors):
    problem = Problem("triangle", "toy", lambda: Loaded(count_neighbors, triangle, triangle.index))
    contestants = [Contestant.named("random", num_samples=20), Contestant.named("distance")]
    settings = ProtocolSettings(metrics=MetricSettings(num_contexts=0))
    contest = Contest("both", problem, contestants, range(2), settings)
    lines = []
    done = contest.finish(tmp_path, lines.append)
    assert len(lines) == len(done.origins) == 3  # distance is deterministic: one seed
    assert list(done.seeds) == [0, 1]
    expected = evaluate([problem], contestants, seeds=range(2), out=tmp_path / "other", settings=settings)
    found = record_of(done.value)
    wanted = {summary.explainer: summary for summary in expected.summaries()}
    for summary in found.summaries():
        same = wanted[summary.explainer]
        assert summary.mean["auc_own"] == same.mean["auc_own"]
        assert summary.instances == same.instances == 1
    assert found.stability == pytest.approx(expected.stability, nan_ok=True)
    again = []
    contest.finish(tmp_path, again.append)
    assert all("stored" in line for line in again)


def test_failed_cells_of_a_contest_are_told(tmp_path):
    def load():
        raise OSError("no disk")

    contest = Contest("none", Problem("triangle", "toy", load), [Contestant.named("random")], [0])
    (line,) = contest.finish(tmp_path, quiet).failures
    assert "no disk" in line


def test_experiments_share_cells_in_a_folder_beside_theirs(tmp_path, counting, triangle, count_neighbors):
    calls, compute = counting
    step = Measurement("a step", {}, compute, beside="common")
    step.finish(tmp_path / "one", quiet)
    assert step.finish(tmp_path / "two", quiet).how == "stored"
    assert (len(calls), step.path(tmp_path / "one").parent) == (1, tmp_path / "common" / "cells")
    problem = Problem("triangle", "toy", lambda: Loaded(count_neighbors, triangle, triangle.index))
    settings = ProtocolSettings(metrics=MetricSettings(num_contexts=0))
    contest = Contest("one", problem, [Contestant.named("distance")], [0], settings, beside="scores")
    contest.finish(tmp_path / "one", quiet)
    lines = []
    contest.finish(tmp_path / "two", lines.append)
    assert all("stored" in line for line in lines)
    assert len(list((tmp_path / "scores" / "cells").iterdir())) == 1
    assert not (tmp_path / "one").exists()
