import json
from dataclasses import replace

import pytest

from gflowbench.explainers import FLOORS, create
from gflowbench.metrics import MetricSettings
from gflowbench.protocol import Contestant, Loaded, Problem, ProtocolSettings, evaluate

QUICK = ProtocolSettings(metrics=MetricSettings(num_contexts=2))


class Counted:
    """An explainer that counts its calls and can be told to fail."""

    name = "counted"

    def __init__(self, calls, *, fail_on=()):
        self.calls, self.fail_on = calls, fail_on

    def fit(self, subject, seed):
        self.calls.append(("fit", seed, subject.index.tolist()))
        if seed in self.fail_on:
            raise ValueError("seed\n out of luck")

    def explain(self, subject, seed):
        self.calls.append(("explain", seed, subject.index.tolist()))
        return create("random", num_samples=5).explain(subject, seed)


@pytest.fixture
def problems(two_triangles, molecules, count_neighbors, mean_degree):
    return [
        Problem("two-triangles", "toy", lambda: Loaded(count_neighbors, two_triangles, two_triangles.index)),
        Problem("molecules", "toy", lambda: Loaded(mean_degree, molecules, molecules.index)),
    ]


def test_explainers_datasets_and_seeds_make_cells(problems, tmp_path):
    lines = []
    contestants = [Contestant.named(name) for name in FLOORS]
    record = evaluate(problems, contestants, seeds=[0, 1], out=tmp_path, settings=QUICK, report=lines.append)
    # Two of the floors depend on the seed.
    assert len(record.cells) == 2 * (2 * 2 + 6)
    assert all(cell.status == "ok" for cell in record.cells)
    assert len(lines) == len(record.cells)
    assert lines[-1].startswith("[20/20] molecules, toy GNN, nothing, seed 0: ok own AUC 0.500")
    cell = record.cells[0]
    assert cell.metrics["milliseconds"] > 0
    assert cell.facts["instances"] == 2
    assert cell.facts["accuracy_on_instances"] == 0.5  # node 3 has class 0, the model says 1
    assert 0 <= record.stability["toy", "molecules", "random"] <= 1
    json.dumps(record.to_dict())


def test_what_is_finished_is_not_done_again(problems, tmp_path):
    calls = []
    contestant = Contestant("counted", lambda: Counted(calls), {"size": 1})
    first = evaluate(problems, [contestant], seeds=[0, 1], out=tmp_path, settings=QUICK)
    done = len(calls)
    again = evaluate(problems, [contestant], seeds=[0, 1], out=tmp_path, settings=QUICK)
    assert len(calls) == done == 8
    assert [c.metrics for c in again.cells] == [c.metrics for c in first.cells]
    assert again.stability == first.stability
    evaluate(problems, [contestant], seeds=[0, 1, 2], out=tmp_path, settings=QUICK)
    assert len(calls) == done + 4


@pytest.mark.parametrize("change", ["x", "y", "index"])
def test_a_cell_of_other_data_is_computed_again(problems, two_triangles, count_neighbors, tmp_path, change):
    calls, lines = [], []
    contestant = Contestant("counted", lambda: Counted(calls), {"size": 1})
    evaluate(problems[:1], [contestant], seeds=[0], out=tmp_path, settings=QUICK)
    graph, index = two_triangles.graphs[0].clone(), two_triangles.index
    if change == "index":
        index = index.flip(0)
    else:
        graph[change] = graph[change] + 1
    changed = replace(two_triangles, graphs=[graph])
    other = Problem("two-triangles", "toy", lambda: Loaded(count_neighbors, changed, index))
    evaluate([other], [contestant], seeds=[0], out=tmp_path, settings=QUICK, report=lines.append)
    assert len(calls) == 4
    assert f"is computed again: '{change}' differs" in lines[0]
    evaluate([other], [contestant], seeds=[0], out=tmp_path, settings=QUICK)
    assert len(calls) == 4


@pytest.mark.parametrize("change", ["explainer", "problem", "protocol"])
def test_another_setting_is_another_cell(problems, tmp_path, change):
    calls = []
    before = Contestant("counted", lambda: Counted(calls), {"size": 1})
    evaluate(problems[:1], [before], seeds=[0], out=tmp_path, settings=QUICK)
    after, problem, settings = before, problems[0], QUICK
    if change == "explainer":
        after = Contestant("counted", lambda: Counted(calls), {"size": 2})
    elif change == "problem":
        problem = Problem(problem.dataset, problem.gnn, problem.load, {"every": 2})
    else:
        settings = ProtocolSettings(metrics=QUICK.metrics, max_nodes=2)
    evaluate([problem], [after], seeds=[0], out=tmp_path, settings=settings)
    assert len(calls) == 4


def test_a_failure_is_recorded_and_the_rest_goes_on(problems, tmp_path):
    calls, lines = [], []
    contestants = [
        Contestant("counted", lambda: Counted(calls, fail_on=[1])),
        Contestant.named("everything"),
    ]
    record = evaluate(problems, contestants, seeds=[0, 1, 2], out=tmp_path, settings=QUICK, report=lines.append)
    failed = [cell for cell in record.cells if cell.status == "failed"]
    assert [(cell.dataset, cell.seed) for cell in failed] == [("two-triangles", 1), ("molecules", 1)]
    assert failed[0].error == "ValueError: seed out of luck"
    assert any("failed ValueError: seed out of luck" in line for line in lines)
    assert sum(cell.status == "ok" for cell in record.cells) == 6
    assert "traceback" not in record.to_dict()["cells"][0]
    # What failed is tried again, and this time it works.
    mended = [Contestant("counted", lambda: Counted(calls))]
    again = evaluate(problems, mended, seeds=[0, 1, 2], out=tmp_path, settings=QUICK)
    assert all(cell.status == "ok" for cell in again.cells)


def test_scores_that_do_not_fit_are_a_failure(problems, tmp_path):
    class Short(Counted):
        def explain(self, subject, seed):
            scores = create("everything").explain(subject, seed)
            return type(scores)(scores.node[1:], scores.edge)

    record = evaluate(problems[:1], [Contestant("short", lambda: Short([]))], seeds=[0], out=tmp_path)
    assert "'counted' returned 'node'" in record.cells[0].error


def test_inductive_fits_on_some_and_explains_the_others(problems, tmp_path):
    calls = []
    settings = ProtocolSettings(metrics=QUICK.metrics, train_share=0.34)
    contestant = Contestant("counted", lambda: Counted(calls))
    record = evaluate(problems[1:], [contestant], seeds=range(5), out=tmp_path, settings=settings)
    for fit, explain in zip(calls[::2], calls[1::2], strict=True):
        assert len(fit[2]) == 1
        assert sorted(fit[2] + explain[2]) == [0, 1, 2]
    assert len({fit[2][0] for fit in calls[::2]}) > 1
    assert record.stability == {}


def test_an_interruption_keeps_what_was_finished(problems, tmp_path):
    class Interrupted(Counted):
        def fit(self, subject, seed):
            if seed == 1:
                raise KeyboardInterrupt

    contestant = Contestant("counted", lambda: Interrupted([]))
    with pytest.raises(KeyboardInterrupt):
        evaluate(problems[:1], [contestant], seeds=[0, 1], out=tmp_path, settings=QUICK)
    assert len(list((tmp_path / "cells").iterdir())) == 1
