from statistics import mean, stdev

import pytest

from gflowbench.paper.experiment import (
    FAILS,
    HOLDS,
    IN_PART,
    UNKNOWN,
    Compared,
    Scope,
    Spread,
    Verdict,
    compare,
    counted,
)
from gflowexplainer.errors import ConfigError


def test_a_scope_gives_seeds_and_sizes():
    assert list(Scope().seeds(5)) == [0, 1, 2, 3, 4]
    assert list(Scope(fast=True).seeds(5, fast=2)) == [0, 1]
    assert list(Scope(fast=True, num_seeds=3).seeds(5)) == [0, 1, 2]
    assert Scope().pick("all", "few") == "all"
    assert Scope(fast=True).pick("all", "few") == "few"
    with pytest.raises(ConfigError, match="at least 1"):
        Scope(num_seeds=0)


def test_trained_gnns_stand_in_where_the_published_files_are_missing(no_reference):
    problem = Scope().problem("tree-cycles", every=3)
    assert (problem.gnn, problem.settings["every"]) == ("trained", 3)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [([True, True], HOLDS), ([True, False], IN_PART), ([False, False], FAILS), ([], UNKNOWN)],
)
def test_a_claim_holds_as_far_as_its_parts_do(parts, verdict):
    assert Verdict.judge("It is so.", parts, "As seen.").verdict == verdict


def test_there_are_four_verdicts():
    with pytest.raises(ConfigError, match="Did you mean 'holds'"):
        Verdict("It is so.", "hold", "As seen.")


def test_paper_ours_and_difference():
    table = compare("AUC", [Compared("a", 0.9, 0.85, 0.01), Compared("b", None, 0.5), Compared("c", 0.5, None)], "x")
    assert table.columns == ("x", "paper", "ours", "difference")
    assert table.rows == (
        ("a", "0.900", "0.850 ± 0.010", "-0.050"),
        ("b", "-", "0.500", "-"),
        ("c", "0.500", "-", "-"),
    )


def test_spread_over_seeds():
    values = [0.5, 0.75, 0.875]
    found = Spread.of([*values, None])
    assert found is not None
    assert (found.mean, found.deviation) == pytest.approx((mean(values), stdev(values)))
    assert str(Spread.of([0.5])) == "0.500"
    assert Spread.of([None]) is None


def test_counting_words():
    assert [counted(n, "seed") for n in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]
