import math

import pytest

from gflowbench.leaderboard.ranking import beats, mean_ranks, standings
from gflowbench.protocol.record import Cell, Record


def cell(explainer: str, value: float, seed: int = 0, dataset: str = "task", **more) -> Cell:
    return Cell(explainer, dataset, "gin", seed, {}, metrics={"auc_node": value, "fidelity_minus": value}, **more)


def record(values: dict[str, list[float]]) -> Record:
    return Record([cell(name, value, seed) for name, found in values.items() for seed, value in enumerate(found)])


def test_ranks_by_hand():
    # b and c differ by .03, less than sqrt(.0707 ** 2 + .0141 ** 2); a is ahead of both, d behind all.
    found = standings(record({"b": [0.75, 0.65], "a": [0.95, 0.94], "c": [0.68, 0.66], "d": [0.2]}), "task", "auc_node")
    assert [(s.explainer, s.rank) for s in found] == [("a", 1), ("b", 2), ("c", 2), ("d", 4)]
    assert found[1].mean == pytest.approx(0.70)
    assert found[1].spread == pytest.approx(0.0707, abs=1e-4)
    assert math.isnan(found[3].spread)
    assert [s.runs for s in found] == [2, 2, 2, 1]


def test_where_smaller_is_better():
    found = standings(record({"a": [0.9], "b": [0.1]}), "task", "fidelity_minus")
    assert [(s.explainer, s.rank) for s in found] == [("b", 1), ("a", 2)]


def test_a_lead_must_exceed_the_spread_of_both():
    assert beats(0.9, 0.03, 0.8, 0.04)
    assert not beats(0.9, 0.08, 0.8, 0.07)
    assert beats(0.9, math.nan, 0.8, math.nan)


def test_mean_ranks_are_over_the_tasks_that_an_explainer_has():
    first = standings(record({"a": [0.9], "b": [0.5]}), "task", "auc_node")
    second = standings(record({"b": [0.9], "c": [0.5]}), "task", "auc_node")
    assert mean_ranks([first, second]) == {"a": 1.0, "b": 1.5, "c": 2.0}
