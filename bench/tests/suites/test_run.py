from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from gflowbench.datasets import Benchmark
from gflowbench.datasets.task_truth import Combination
from gflowbench.explainers import create
from gflowbench.models.model_accuracy import logits
from gflowbench.suites import logic_suite, null_cases
from gflowbench.suites.cases import make_cases, whole_predictions
from gflowbench.suites.explaining import explain_cases, subject_of
from gflowbench.suites.gnn_fitting import GRAPH_SCHEDULE, fit_gnn, split_score
from gflowbench.suites.gnns import Shape, build_gnn, load_gnn, save_gnn
from gflowbench.suites.logic_suite import make_logic_task
from gflowbench.suites.null_cases import better_than_random, fit_null_gnn, make_null_task
from gflowbench.suites.run import measure_shown, prepare
from gflowbench.suites.scoring import node_sets, score_cases, summarize
from gflowexplainer.errors import CheckpointError

SMALL = dict.fromkeys(logic_suite.NAMES, 300)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logic_suite, "NUM_GRAPHS", SMALL)


def test_same_seed_same_gnn_and_back_from_file(tmp_path: Path) -> None:
    task = make_logic_task("colour-pair", 0, 60)
    state = torch.random.get_rng_state()
    (one, score), (other, _) = (fit_gnn("gin", task, 1, replace(GRAPH_SCHEDULE, epochs=2)) for _ in range(2))
    assert torch.equal(state, torch.random.get_rng_state())
    save_gnn(tmp_path / "a.safetensors", one, score)
    read, stored = load_gnn(tmp_path / "a.safetensors")
    assert stored == score == split_score(read, task)
    for a, b, c in zip(one.state_dict().values(), other.state_dict().values(), read.state_dict().values(), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)
    (tmp_path / "b.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="damaged"):
        load_gnn(tmp_path / "b.safetensors")


def test_values_of_graphs_and_nodes_are_learned() -> None:
    task = make_logic_task("sum-node", 0, 60)
    model, score = fit_gnn("gin", task, 0, replace(GRAPH_SCHEDULE, epochs=40, learning_rate=1e-2))
    assert score > 0.3
    cases = make_cases(model, task, task.instances()[:3])
    assert all(case.target is None and case.truth is not None for case in cases)
    found = explain_cases(model, task, cases, explainer="gflow", seed=0, epochs=2)
    sets = [node_sets(case, explanation) for case, explanation in zip(cases, found, strict=True)]
    rows = score_cases(model, cases, found, sets)
    assert {"auc", "concordance", "only_error", "without_shift"} <= set(summarize(rows))


def test_ours_on_graphs_and_nodes() -> None:
    for name in ("opposed", "distance"):
        task = make_logic_task(name, 0, 40)
        model, _ = fit_gnn("graphsage", task, 0, replace(GRAPH_SCHEDULE, epochs=5))
        cases = make_cases(model, task, task.instances(), correct=False)[:4]
        found = explain_cases(model, task, cases, explainer="gflow", seed=0, max_nodes=4, epochs=2)
        for case, explanation in zip(cases, found, strict=True):
            assert explanation.scores.shape == (case.num_nodes,)
            assert explanation.parts is not None
            assert len(explanation.parts[0]) >= 1
            assert case.center is None or case.center in explanation.parts[0]
    assert explain_cases(model, task, [], explainer="gflow", seed=0) == []


@pytest.mark.parametrize("gnn", ["gcn", "gin", "graphsage", "gat"])
def test_computation_graphs_give_the_prediction_of_the_whole_graph(gnn: str) -> None:
    generator = torch.Generator().manual_seed(0)
    graph = Data(
        x=torch.randn(40, 3, generator=generator),
        edge_index=to_undirected(torch.randint(0, 40, (2, 50), generator=generator)),
        y=torch.zeros(40, dtype=torch.long),
    )
    task = Benchmark("toy", "node", [graph], torch.arange(40), 2, "generated", "by hand", num_layers=2)
    model = build_gnn(Shape(gnn=gnn, level="node", in_channels=3, out_channels=2, num_layers=2), 0).eval()
    cases = make_cases(model, task, range(40), correct=False, num_hops=2 + (gnn == "gcn"))
    assert min(case.num_nodes for case in cases) < 40
    whole = logits(model, task).double().softmax(dim=1).max(dim=1).values
    assert torch.allclose(whole_predictions(model, cases), whole, atol=1e-5)


def test_a_problem_is_prepared_once_and_what_is_shown_is_scored(
    tmp_path: Path, small: None, capsys: pytest.CaptureFixture[str]
) -> None:
    ready, again = (prepare("logic", "opposed", "graphsage", 0, 12, tmp_path) for _ in "ab")
    assert capsys.readouterr().err.count("trained to") == 1
    assert ready.learned
    assert ready.score == again.score
    assert len(ready.cases) == 12
    subject = subject_of(ready.model, ready.task, ready.cases)
    explainer = create("occlusion")
    found = measure_shown(ready, "logic", 0, explainer, subject, explainer.explain(subject, 0))
    assert found["shown_auc"] > 0.7
    assert 0 <= found["shown_exact"] <= 1


def test_null_cases(small: None) -> None:
    for name in null_cases.NAMES[:3]:
        null = make_null_task(name, 0, 40)
        assert {null.truths[i].combination for i in null.index.tolist()} == {Combination.NONE}
    noise, opposed = make_null_task("noise-labels", 0, 40), make_logic_task("opposed", 0, 40)
    assert any(int(a.y) != int(b.y) for a, b in zip(noise.graphs, opposed.graphs, strict=True))
    real = make_null_task("real", 0)
    model, score = fit_null_gnn("graphsage", real, 0)
    assert score >= 0.95
    cases = null_cases.null_cases(model, real)[:10]
    right = [case.truth.parts for case in cases if case.truth]
    wrong = [((0,),) for _ in cases]
    assert better_than_random(model, cases, right, 0).float().mean() >= 0.8
    assert better_than_random(model, cases, wrong, 0).float().mean() <= 0.2
