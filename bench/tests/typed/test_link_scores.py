"""Scores of explained links, worked out by hand."""

import pytest

from gflowbench.typed.link_explainers import by_rank
from gflowbench.typed.link_scores import edge_auc, path_hits, ranking_of


def test_a_path_is_found_as_early_as_its_last_edge():
    ranking = ["a", "b", "c", "d", "e", "f"]
    assert path_hits(ranking, [["a", "f"], ["d", "b"]]) == {3: False, 5: True, 10: True, 20: True, 50: True, 100: True}
    assert not any(path_hits(ranking, [["a", "z"]]).values())


def test_edges_without_a_score_have_none():
    # Of four pairs of a true and another edge, two are in order and one is tied.
    assert edge_auc({"a": 2.0, "b": 1.0}, {"a", "c"}, ["a", "b", "c", "d"]) == pytest.approx(2.5 / 4)


def test_ties_are_broken_by_chance_but_the_better_come_first():
    orders = {tuple(ranking_of({"a": 1.0, "b": 1.0, "c": 2.0}, seed)) for seed in range(20)}
    assert orders == {("c", "a", "b"), ("c", "b", "a")}


def test_edges_are_ranked_by_the_first_path_that_they_are_on():
    assert by_rank([["a", "b"], ["b", "c"]]) == {"a": 4.0, "b": 3.0, "c": 2.0}
