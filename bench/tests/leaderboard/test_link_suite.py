"""The suite of links: its cells are stored and taken up again, scored and put on the page."""

from functools import partial
from pathlib import Path

import pytest
import torch

from gflowbench.leaderboard import page, problems_of, tasks_of
from gflowbench.leaderboard.link_suite import (
    NOT_LINKS,
    counted_evaluations,
    evaluate_links,
    fast_link_plan,
    link_contestants,
    link_plan,
)
from gflowbench.protocol import Contestant, Problem
from gflowbench.typed.link_peers import create_link_peer
from gflowbench.typed.toy_links import shared_attributes, shared_neighbours
from gflowexplainer.errors import ConfigError

TINY = [Problem("plain", "by hand", shared_neighbours), Problem("typed", "by hand", shared_attributes)]


def run(tmp_path: Path, words: list[str], told: list[str] | None = None, **settings):
    contestants, others = link_contestants(words)
    report = None if told is None else told.append
    return evaluate_links(TINY, contestants, others, seeds=[0, 1], out=tmp_path, report=report, **settings)


def test_cells_are_scored_stored_and_taken_up_again(tmp_path: Path):
    told: list[str] = []
    record = run(tmp_path, ["saliency", "shortest-ways", "subgraphx"], told)
    assert [(cell.dataset, cell.explainer, cell.seed) for cell in record.cells] == [
        ("plain", "saliency", 0),
        ("plain", "shortest-ways", 0),
        ("typed", "saliency", 0),
        ("typed", "shortest-ways", 0),
    ]
    saliency = record.cells[0].metrics
    # Two of four true edges lie with two others in front of eight; the other two among those at 0.
    assert saliency["auc_edge"] == pytest.approx((2 * (10 + 2 / 2) + 2 * (10 / 2)) / (4 * 12))
    assert record.cells[2].metrics["auc_edge"] == 1.0
    assert record.cells[2].metrics["path_hit_3"] == 1.0
    assert saliency["evaluations"] == 1.0  # all eight nodes count for either link, and each is evaluated once
    assert record.left_out["by hand", "plain", "subgraphx"] == NOT_LINKS
    assert not any("stored" in line for line in told)
    told.clear()
    again = run(tmp_path, ["saliency", "shortest-ways"], told)
    assert all("stored" in line for line in told)
    assert [cell.metrics for cell in again.cells] == [cell.metrics for cell in record.cells]


def test_another_graph_is_computed_again(tmp_path: Path):
    def changed():
        task = shared_neighbours()
        task.graph.x[7, 7] = 2.0
        return task

    told: list[str] = []
    contestants, _ = link_contestants(["distance"])
    for load in (shared_neighbours, changed):
        problem = Problem("plain", "by hand", load)
        evaluate_links([problem], contestants, seeds=[0], out=tmp_path, report=told.append)
    assert any("is of something else" in line for line in told)


def test_ours_is_a_cell_too(tmp_path: Path):
    quick = partial(create_link_peer, "gflow", max_nodes=4, epochs=1, num_contexts=2)
    record = evaluate_links(TINY[:1], [Contestant("gflow", quick)], seeds=[0], out=tmp_path)
    assert record.cells[0].status == "ok", record.cells[0].error
    assert record.cells[0].metrics["evaluations"] > 1
    assert record.cells[0].metrics["fit_seconds"] > 0


def test_the_page_of_links_has_floors_first_and_says_who_explains_none(tmp_path: Path):
    text = page({"links": run(tmp_path, ["saliency", "shortest-ways", "subgraphx", "gstarx"])})
    table = text[text.index("**AUC of the edges") :]
    assert table.index("| shortest-ways |") < table.index("| saliency |")
    assert "the floor 'shortest-ways'" in text or "the best floor is 'shortest-ways'" in text
    assert "**Share of links of which the first 3 edges hold a true path" in text
    assert f"- left out: subgraphx, gstarx on plain, typed: {NOT_LINKS}" in text


def test_evaluations_are_counted_by_nodes():
    task = shared_neighbours()
    with counted_evaluations(task) as evaluations:
        task.model(task.graph.x, task.graph.edge_index, task.test)
        task.model(task.graph.x[:4], torch.zeros(2, 0, dtype=torch.long), task.test)
    assert evaluations() == pytest.approx(12 / 16)


def test_tasks_and_plans_of_the_suite(tmp_path: Path):
    assert tasks_of("links") == ("user-item-attr", "motif-links")
    names = [(problem.dataset, problem.gnn) for problem in problems_of("links", tmp_path)]
    assert len(names) == 4
    assert len(problems_of("links", tmp_path, tasks=["motif-links"], fast=True)) == 1
    assert fast_link_plan("gflow", "user-item-attr").settings == {"num_train": 16}
    assert link_plan("gflow", "user-item-attr").words(None, {}) == ""
    with pytest.raises(ConfigError, match="task"):
        problems_of("links", tmp_path, tasks=["or"])


def test_explainers_of_which_none_explains_links_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="None of these explainers explains links: subgraphx"):
        run(tmp_path, ["subgraphx"])
