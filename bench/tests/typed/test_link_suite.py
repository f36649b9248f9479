"""Links are cells of the protocol: scored, stored, taken up again, and put on the page."""

from pathlib import Path

import pytest
import torch

from gflowbench.explainers.registry import NO_LINKS, named, names
from gflowbench.leaderboard import page, problems_of, tasks_of
from gflowbench.protocol import Contestant, Problem, evaluate
from gflowbench.protocol.cells import counted_evaluations
from gflowbench.typed.link_scores import edge_auc, path_hits, ranking_of
from gflowexplainer.errors import ConfigError


@pytest.fixture
def run(shared_neighbours, shared_attributes, tmp_path: Path):
    problems = [
        Problem("plain", "by hand", lambda: shared_neighbours, links=True),
        Problem("typed", "by hand", lambda: shared_attributes, links=True),
    ]

    def run(words, told=None, **settings):
        contestants = [Contestant.named(word, **settings) for word in words]
        return evaluate(problems, contestants, seeds=[0], out=tmp_path, report=None if told is None else told.append)

    return run


def test_cells_are_scored_stored_and_taken_up_again(run):
    told: list[str] = []
    record = run(["saliency", "shortest-ways", "subgraphx"], told)
    assert [(cell.dataset, cell.explainer) for cell in record.cells] == [
        ("plain", "saliency"),
        ("plain", "shortest-ways"),
        ("typed", "saliency"),
        ("typed", "shortest-ways"),
    ]
    saliency = record.cells[0].metrics
    # Two of four true edges lie with two others in front of eight; the other two among those at 0.
    assert saliency["auc_edge"] == pytest.approx((2 * (10 + 2 / 2) + 2 * (10 / 2)) / (4 * 12))
    assert record.cells[2].metrics["auc_edge"] == record.cells[2].metrics["path_hit_3"] == 1.0
    assert saliency["evaluations"] == 1.0  # all eight nodes count for either link, and each is evaluated once
    assert record.left_out["by hand", "plain", "subgraphx"] == NO_LINKS
    assert not any("stored" in line for line in told)
    told.clear()
    assert [cell.metrics for cell in run(["saliency", "shortest-ways"], told).cells] == [
        c.metrics for c in record.cells
    ]
    assert all("stored" in line for line in told)
    with pytest.raises(ConfigError, match="nothing to evaluate: subgraphx"):
        run(["subgraphx"])


def test_another_graph_is_computed_again(run, shared_neighbours):
    told: list[str] = []
    run(["distance"])
    shared_neighbours.graph.x[7, 7] = 2.0
    run(["distance"], told)
    assert any("is of something else" in line for line in told)


def test_ours_is_a_cell_too(run):
    record = run(["gflow"], max_nodes=4)
    assert record.cells[0].status == "ok", record.cells[0].error
    assert record.cells[0].metrics["evaluations"] > 1
    assert record.cells[0].metrics["fit_seconds"] > 0


def test_the_page_of_links_has_floors_first_and_says_who_explains_none(run):
    text = page({"links": run(["saliency", "shortest-ways", "subgraphx", "gstarx"])})
    table = text[text.index("**AUC of the edges") :]
    assert table.index("| shortest-ways |") < table.index("| saliency |")
    assert f"- left out: subgraphx, gstarx on plain, typed: {NO_LINKS}" in text


def test_evaluations_are_counted_by_nodes(shared_neighbours):
    task = shared_neighbours
    with counted_evaluations(task) as evaluations:
        task.model(task.graph.x, task.graph.edge_index, task.test)
        task.model(task.graph.x[:4], torch.zeros(2, 0, dtype=torch.long), task.test)
    assert evaluations() == pytest.approx(12 / 16)


def test_tasks_of_the_suite_and_words_for_its_explainers(tmp_path: Path):
    found = problems_of("links", tmp_path)
    assert {problem.dataset for problem in found} == set(tasks_of("links"))
    assert len(found) == 4
    assert len(problems_of("links", tmp_path, tasks=["motif-links"], fast=True)) == 1
    assert named(["floors", "gflow"], links=True) == [*names("floors", links=True), "gflow"]
    with pytest.raises(ConfigError, match="task"):
        problems_of("links", tmp_path, tasks=["or"])
    with pytest.raises(ConfigError, match="Did you mean 'shortest-ways'"):
        named(["shortest-way"], links=True)


def test_paths_edges_and_ties_are_scored_by_hand():
    ranking = ["a", "b", "c", "d", "e", "f"]
    assert path_hits(ranking, [["a", "f"], ["d", "b"]]) == {3: False, 5: True, 10: True, 20: True, 50: True, 100: True}
    assert not any(path_hits(ranking, [["a", "z"]]).values())
    # Of four pairs of a true and another edge, two are in order and one, without a score, is tied.
    assert edge_auc({"a": 2.0, "b": 1.0}, {"a", "c"}, ["a", "b", "c", "d"]) == pytest.approx(2.5 / 4)
    orders = {tuple(ranking_of({"a": 1.0, "b": 1.0, "c": 2.0}, seed)) for seed in range(20)}
    assert orders == {("c", "a", "b"), ("c", "b", "a")}
