from pathlib import Path

import pytest

from gflowbench.suites import logic_suite
from gflowbench.suites.evidence_map import EVIDENCE, Place, markdown, places, run


def record(suite: str, *scores: float) -> dict:
    identity = {"suite": suite, "task": "or", "gnn": "gin"}
    return {
        "identity": identity,
        "scores": dict(zip(EVIDENCE, scores, strict=False)),
        "taken": "shared, 0.8 kept",
        "explained": 0.5,
        "reproducible": 0.75,
    }


def test_what_the_rule_costs_is_what_the_better_one_has_more() -> None:
    table = markdown([record("logic", 0.9, 0.8, 1.0), record("logic", 1.0, 1.0, 0.5), record("real")])
    assert "| logic | or | gin | shared, 0.8 kept | 0.50 | 0.75 | 0.900 | 0.800 | 1.000 |" in table
    assert "| logic | 2 | 0.950 | 0.900 | 0.750 | 1.000 | 0.100 |" in table
    assert "| real |" not in table


def test_places_are_those_of_the_suites() -> None:
    found = places(3, 5, ["logic", "published"])
    assert len(found) == len(logic_suite.NAMES) * 4 + 6
    assert {place.seed for place in found if place.suite == "logic"} == {3}
    assert {place.score for place in found} == {"auc"}
    assert {place.score for place in places(3, 5, ["real"])} == {"characterization@4"}


def test_a_place_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(logic_suite, "NUM_GRAPHS", dict.fromkeys(logic_suite.NAMES, 300))
    wanted = [Place("logic", "opposed", "graphsage", 0, 4)]
    (first,) = run(wanted, tmp_path)
    assert set(first["scores"]) == set(EVIDENCE)
    assert all(0 <= score <= 1 for score in first["scores"].values())
    assert first["taken"].split(",")[0] in ("shared", "both", "own")
    assert "[1/1]" in capsys.readouterr().err
    assert list(run(wanted, tmp_path)) == [first]
    assert "[1/1]" not in capsys.readouterr().err
