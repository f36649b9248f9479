"""What the benchmarks do apart from measuring: the command line, the regression check, and copies of a graph."""

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import __main__ as command_line
from benchmarks import check, measuring
from benchmarks.peers import GNN, GNN_HERE, OURS, PG, Lengths, Peers, copied, tables
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


def test_recorded_ratios_are_those_that_are_checked():
    """What is committed must come from the file formats that the check reads now."""
    path = Path(__file__).parents[3] / measuring.FULL
    times = json.loads((path / "cut_vertices" / "times.json").read_text())
    assert min(check.of_cut_vertices(times).values()) > 1


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


def test_peers_do_not_disturb_one_another(loaded):
    """What GNNExplainer leaves in a model keeps PyG's PGExplainer from learning, so each gets a model of its own."""
    subject = Subject.of(loaded.model, loaded.benchmark)
    found = []
    for first in (False, True):
        peers = Peers(loaded, Lengths(gnn_epochs=2, gnn_instances=1, pg_epochs=3))
        if first:
            peers.explain_by_gnn()
        peers.fit_pg()
        found.append(peers.scores(subject).edge)
    assert torch.equal(*found)
    assert found[0].shape == subject.instances.edge_id.shape
    untrained = Peers(loaded, Lengths(pg_epochs=0))
    untrained.fit_pg()
    assert not torch.equal(untrained.scores(subject).edge, found[0])


def test_ratios_of_the_table_are_medians_over_rounds():
    seconds = {OURS: [0.001, 0.002, 0.004], GNN: [2.0, 2.0, 2.0], PG: [0.003, 0.008, 0.002]}
    auc = dict.fromkeys((OURS, PG, GNN_HERE), 0.9)
    training = {OURS: seconds[OURS], PG: seconds[PG]}
    found = {"explaining": seconds, "training": training, "many": [0.001] * 3, "many_instances": 6, "auc": auc}
    lengths = vars(Lengths())
    explaining, trained, many = tables({"datasets": {"toy": found}, "lengths": lengths, "device": "CPU", "threads": 2})
    assert [row[1:] for row in explaining.rows] == [
        ("2", "1 to 4", "1"),
        ("2,000", "2,000 to 2,000", "1,000"),
        ("3", "2 to 8", "3"),
    ]
    assert trained.rows[1][3] == "3"
    assert many.rows == (("toy", "6", "1,000", "1,000 to 1,000"),)
