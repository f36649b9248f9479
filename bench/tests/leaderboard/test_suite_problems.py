"""Tasks of suites as problems: their truth read off at instances, and a run of the protocol on them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gflowbench.datasets import Benchmark
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.explainers import Subject
from gflowbench.leaderboard import problems_of
from gflowbench.metrics import GroundTruth, MetricSettings
from gflowbench.protocol import Contestant, ProtocolSettings, evaluate
from gflowbench.suites import logic_suite
from gflowexplainer.errors import ConfigError
from gflowexplainer.testing import GraphModel, NodeModel, house, path


def test_truth_of_graphs_by_hand():
    benchmark = Benchmark.from_graphs([path(4), house()], task="graph", num_classes=2)
    subject = Subject.of(GraphModel(), benchmark, [1, 0])
    truths = {0: TaskTruth(4, Combination.ALL, ((0, 1), (3,)))}
    found = GroundTruth.of(replace(benchmark, truths=truths), subject)
    assert found.node.tolist() == [False] * 5 + [True, True, False, True]
    ends = subject.instances.edge_index[:, found.own] - 5
    assert sorted(map(tuple, ends.t().tolist())) == [(0, 1), (1, 0)]


def test_truth_of_a_node_is_read_off_by_id():
    graph = path(9)
    graph.y = torch.zeros(9, dtype=torch.long)
    truths = {6: TaskTruth(9, Combination.ANY, ((5, 6),)), 2: TaskTruth(9, Combination.ANY, ((0, 8),))}
    benchmark = Benchmark.from_graphs([graph], task="node", num_classes=3, index=[6, 2])
    subject = Subject.of(NodeModel(), benchmark)
    found = GroundTruth.of(replace(benchmark, truths=truths), subject)
    instances = subject.instances
    assert instances.node_id[found.node & (instances.owner == 0)].tolist() == [5, 6]
    assert instances.node_id[found.node & (instances.owner == 1)].tolist() == [0]  # 8 is not in reach
    assert int(found.own.sum()) == 2


def test_a_value_is_ranked_by_the_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logic_suite, "NUM_GRAPHS", dict.fromkeys(logic_suite.NAMES, 300))
    monkeypatch.setattr("gflowbench.suites.run.LEARNED", -10.0)
    (problem,) = problems_of("logic", tmp_path, tasks=["sum-graph"], gnns=["gin"], fast=True)
    settings = ProtocolSettings(metrics=MetricSettings(num_contexts=2))
    contestants = [Contestant.named(name) for name in ("degree", "saliency", "eig-search")]
    record = evaluate([problem], contestants, seeds=[0], out=tmp_path, settings=settings)
    assert [cell.error for cell in record.cells] == ["", "", ""]
    for cell in record.cells:
        assert 0 <= cell.metrics["auc_node"] <= 1
        assert cell.metrics["fidelity_plus"] >= 0
        assert cell.metrics["shown_only_error"] >= 0
    degree, saliency, eig = (cell.metrics["evaluations"] for cell in record.cells)
    assert degree == 0
    assert saliency == pytest.approx(1)
    assert eig > 10
    again = evaluate([problem], contestants, seeds=[0], out=tmp_path, settings=settings)
    # Times would differ if anything had been computed again.
    times = [[cell.metrics["milliseconds"] for cell in found.cells] for found in (record, again)]
    assert times[0] == times[1]


def test_a_first_look_is_smaller(tmp_path: Path):
    assert len(problems_of("logic", tmp_path, fast=True)) == 4
    assert len(problems_of("paper", tmp_path)) == 6
    assert [p.dataset for p in problems_of("real", tmp_path, fast=True)] == ["cora"]
    with pytest.raises(ConfigError, match="suite"):
        problems_of("papers", tmp_path)
    with pytest.raises(ConfigError, match="task"):
        problems_of("logic", tmp_path, tasks=["orr"])
