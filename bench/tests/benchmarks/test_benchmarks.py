"""What the benchmarks do apart from measuring: the command line, the regression check, and copies of a graph."""

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import __main__ as command_line
from benchmarks import check, measuring
from benchmarks.peers import copied
from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject
from gflowbench.protocol.problems import Loaded
from gflowexplainer.testing import NodeModel, random_graph


def test_a_ratio_that_fell_below_half_is_named():
    recorded = {"a": 100.0, "b": 100.0, "c": 3.0, "d": 1.0}
    lines = check.regressions(recorded, {"a": 50.0, "b": 49.9, "c": 9.0, "new": 0.1})
    assert [line.partition(":")[0] for line in lines] == ["b", "d"]
    assert "49.9" in lines[0]
    assert "100" in lines[0]
    assert check.regressions({"a": 1.0}, {"a": float("nan")})


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """A benchmark of one ratio, which the test sets, in place of the real ones."""
    monkeypatch.setattr(measuring, "FULL", tmp_path)
    module = type(sys)("benchmarks.made_up")
    module.ratio = 8.0
    module.main = lambda fast: measuring.write_json(
        measuring.results_folder("made_up", fast) / "r.json", {"ratio": module.ratio, "fast": fast}
    )
    monkeypatch.setitem(sys.modules, "benchmarks.made_up", module)
    monkeypatch.setattr(check, "RATIOS", {"made_up": ("r.json", lambda found: {"x": found["ratio"]})})
    return module


def test_the_check_passes_and_fails_by_what_was_recorded(quick, tmp_path, capsys):
    with pytest.raises(SystemExit, match="--record"):
        check.main()
    check.main(record=True)
    assert json.loads((tmp_path / "check" / "ratios.json").read_text())["ratios"] == {"made_up: x": 8.0}
    assert not (tmp_path / "made_up").exists()
    quick.ratio = 4.1
    check.main()
    quick.ratio = 3.9
    with pytest.raises(SystemExit, match=r"made_up: x: 3\.9") as ended:
        check.main()
    assert ended.value.code != 0


def test_options_go_to_those_that_take_them_and_the_check_runs_only_by_name(monkeypatch):
    found = command_line.find_benchmarks()
    assert "record" in found["check"].options
    assert "fast" not in found["check"].options
    assert {"fast", "device"} <= set(found["peers"].options)
    called = []
    for name in found:
        module = type(sys)(f"benchmarks.{name}")
        module.main = lambda name=name, **given: called.append((name, given))
        monkeypatch.setitem(sys.modules, f"benchmarks.{name}", module)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--fast"])
    command_line.main()
    given = dict(called)
    assert "check" not in given
    assert given["peers"] == {"fast": True, "device": "cpu"}
    assert given["hubs"] == {"fast": True}


@pytest.fixture
def loaded():
    graph = random_graph(12, 0.1, seed=1)
    graph.y = torch.zeros(12, dtype=torch.long)
    benchmark = Benchmark.from_graphs([graph], task="node", index=[0, 5], num_classes=3)
    return Loaded(NodeModel(), benchmark, benchmark.index)


def test_copies_of_an_instance_are_distinct_and_alike(loaded):
    several = copied(loaded, 3)
    assert several.index.tolist() == [0, 5, 12, 17, 24, 29]
    subject = Subject.of(several.model, several.benchmark, several.index)
    assert subject.instances.own_key.unique().numel() == 6
    prediction = subject.target.prediction
    torch.testing.assert_close(prediction, prediction[:2].repeat(3, 1))
