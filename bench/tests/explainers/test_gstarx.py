"""GStarX's values by hand on three nodes, against Shapley values on a complete graph, and as shares of a whole."""

import itertools
import math

import pytest
import torch

from gflowbench.explainers import create
from gflowbench.explainers.gstarx import _connected, structure_aware_values
from gflowexplainer.errors import ConfigError

PATH = {0: {1}, 1: {0, 2}, 2: {1}}


def complete(count: int) -> dict[int, set[int]]:
    return {node: set(range(count)) - {node} for node in range(count)}


def random_game(neighbors: dict[int, set[int]], seed: int) -> dict[frozenset[int], float]:
    generator = torch.Generator().manual_seed(seed)
    sets = sorted(_connected(neighbors, frozenset(neighbors)), key=sorted)
    return {s: float(torch.randn((), generator=generator, dtype=torch.double)) for s in sets}


def test_on_a_complete_graph_it_is_the_shapley_value():
    worth = random_game(complete(4), seed=0)
    found = structure_aware_values(complete(4), worth, 0.01)
    for player in range(4):
        total = 0.0
        for size in range(4):
            for others in map(frozenset, itertools.combinations(set(range(4)) - {player}, size)):
                weight = math.factorial(size) * math.factorial(3 - size) / 24
                total += weight * (worth[others | {player}] - worth.get(others, 0.0))
        assert found[player] == pytest.approx(total, abs=1e-7)


def test_the_path_by_hand():
    # Only 0 and 1 together are worth something, with or without 2. Of the surplus s1 = v(01) - v(0) - v(1) = 1 and
    # s2 = v(12) - v(1) - v(2) = 0 and the surplus of all three. With a = v(0), b = v(1), c = v(2), d = v(01),
    # e = v(12), f = v(012), one step is a += t(d-a-b), b += t(d-a-b) + t(e-b-c), c += t(e-b-c), d += t(f-d-c),
    # e += t(f-e-a), f = f. Iterated by plain numbers here, without matrices.
    t = 0.05
    a = b = c = e = 0.0
    d = f = 1.0
    for _ in range(20_000):
        first, second = d - a - b, e - b - c
        a, b, c, d, e = (
            a + t * first,
            b + t * (first + second),
            c + t * second,
            d + t * (f - d - c),
            e + t * (f - e - a),
        )
    worth = {frozenset(s): float({0, 1} <= set(s)) for s in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)]}
    found = structure_aware_values(PATH, worth, t)
    assert [found[0], found[1], found[2]] == pytest.approx([a, b, c], abs=1e-8)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-8)
    assert found[1] > found[2]


def test_what_all_are_worth_is_shared_out():
    neighbors = {0: {1, 2}, 1: {0, 2}, 2: {0, 1, 3}, 3: {2, 4}, 4: {3}}
    worth = random_game(neighbors, seed=3)
    found = structure_aware_values(neighbors, worth, 0.01)
    assert sum(found.values()) == pytest.approx(worth[frozenset(range(5))], abs=1e-7)


def test_a_sum_of_its_nodes_is_left_alone():
    worth = {s: float(sum(s)) for s in _connected(PATH, frozenset(PATH))}
    assert structure_aware_values(PATH, worth, 0.01) == pytest.approx({0: 0, 1: 1, 2: 2})


def test_a_limit_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="'tau' must be less than"):
        create("gstarx", tau=0.5)
