from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from gflowbench.paper import Results, Scope, growing_cut_vertices, growth_times
from gflowbench.paper.growing_cut_vertices import EXPERIMENT, accumulated, exponent, follow_growth
from gflowbench.paper.growth_times import BATCHED, PLAIN, SINGLE, TARJAN


@pytest.fixture
def small(monkeypatch):
    for module in (growth_times, growing_cut_vertices):
        monkeypatch.setattr(module, "NODES", 12)
    monkeypatch.setattr(growth_times, "BATCH", 8)
    monkeypatch.setattr(growing_cut_vertices, "SHOWN", (10, 12))


def test_all_methods_are_timed_at_every_step_and_agree(small):
    found = growth_times.time_growth(0.1, graphs=3, rounds=1)
    assert set(found["microseconds"]) == {BATCHED, SINGLE, PLAIN, TARJAN}
    for times in found["microseconds"].values():
        assert len(times) == 10
        assert all(0 < time < 1e6 for time in times)
    assert (found["states"], found["differences"], found["elsewhere"]) == (8 * 12, 0, 0)
    assert found["cut_vertices"] > 0


def test_wrong_cut_vertices_would_be_noticed(small, monkeypatch):
    monkeypatch.setattr(growth_times, "tarjan", lambda neighbors: {0})
    assert growth_times.time_growth(0.1, graphs=1, rounds=1)["differences"] > 0


def test_the_picture_shows_cut_vertices_come_and_go():
    growth = follow_growth()
    graph = nx.Graph(growth["edges"])
    assert graph.number_of_nodes() == 10
    for size, cuts in enumerate(growth["cuts"], start=1):
        assert set(cuts) == set(nx.articulation_points(graph.subgraph(range(size))))
    counts = [len(cuts) for cuts in growth["cuts"]]
    assert any(b < a for a, b in pairwise(counts))


def test_exponents():
    assert accumulated([1.0, 2.0, 3.0]) == [1.0, 3.0, 6.0]
    sizes = np.arange(3, 65.0)
    quadratic = np.diff(sizes**2, prepend=0)
    assert exponent(quadratic.tolist()) == pytest.approx(2)


def test_verdicts_and_figures_follow_the_values(small):
    sizes = np.arange(3, 13.0)
    linear, quadratic = np.diff(sizes, prepend=0).tolist(), np.diff(sizes**2, prepend=0).tolist()
    value = {
        "microseconds": {BATCHED: linear, SINGLE: linear, PLAIN: linear, TARJAN: quadratic},
        "states": 10, "cut_vertices": 5, "differences": 0, "elsewhere": 0,
    }  # fmt: skip
    values = {"times, sparse": value, "times, dense": value, growing_cut_vertices.STEPS: follow_growth()}
    outcome = EXPERIMENT.present(Results(Scope(), values))
    assert [verdict.verdict for verdict in outcome.verdicts] == ["holds"] * 4
    assert "On sparse graphs it grows as n^2.00 with Tarjan's and n^1.00 with Theorem 1" in outcome.verdicts[2].evidence
    assert "12.0 times as long (sparse, 12 nodes)" in outcome.verdicts[3].evidence
    for drawing in outcome.drawings:
        assert drawing.draw().axes
    slow = value | {"microseconds": value["microseconds"] | {PLAIN: quadratic}, "differences": 1}
    outcome = EXPERIMENT.present(Results(Scope(), values | {"times, sparse": slow, "times, dense": slow}))
    assert [verdict.verdict for verdict in outcome.verdicts] == [
        "does not hold",
        "holds",
        "holds in part",
        "holds in part",
    ]
