"""The search for small sets, on functions whose smallest set is known."""

from itertools import combinations

import pytest
import torch

from gflowexplainer.inference.set_search import SetSearch


class Weighed:
    """Removing a set goes as far as its units weigh, less a bound; counts what it is asked."""

    def __init__(self, weights, bound, together=()):
        self.weights, self.bound, self.together, self.asked = weights, bound, together, 0

    def __call__(self, sets):
        self.asked += len(sets)
        extra = [sum(set(group) <= set(units) for group in self.together) for units in sets]
        return [
            sum(self.weights[u] for u in units) + more - self.bound for units, more in zip(sets, extra, strict=True)
        ]


def search(number, measure, *, connected=lambda units: True, limit=1000, enough=200, exhaustive=200):
    return SetSearch(number, measure, connected, limit=limit, enough=enough, exhaustive=exhaustive)


def test_where_one_unit_suffices_nothing_but_single_ones_is_tried():
    measure = Weighed([0.0] * 30, 0.5, together=[(7,)])
    found = search(30, measure).run([(1, 2, 7), (3, 4)])
    assert (found.units, found.minimal, found.tried, measure.asked) == ((7,), True, 30, 30)


def test_a_large_set_is_shrunk_by_halves():
    # Only 11 and 93 together do it, neither shows anything alone, and one set that is given holds both.
    measure = Weighed([0.0] * 100, 0.5, together=[(11, 93)])
    found = search(100, measure).run([tuple(range(5, 96))])
    assert found.units == (11, 93)
    assert found.minimal
    assert found.tried <= 200


@pytest.mark.parametrize("seed", range(8))
def test_small_problems_are_solved_as_by_trying_all_sets(seed):
    draw = torch.Generator().manual_seed(seed)
    weights = torch.rand(9, generator=draw).tolist()
    together = [tuple(torch.randperm(9, generator=draw)[:3].tolist()) for _ in range(2)]
    measure = Weighed(weights, 1.9, together)
    every = [units for size in range(1, 10) for units in combinations(range(9), size)]
    truth = min(len(units) for units, value in zip(every, measure(every), strict=True) if value > 0)
    found = search(9, measure, exhaustive=1000).run([])
    assert len(found.units) == truth
    assert found.minimal


@pytest.mark.parametrize("number", [40, 120, 400])
def test_once_a_set_is_known_no_more_are_tried_than_is_enough(number):
    draw = torch.Generator().manual_seed(number)
    measure = Weighed(torch.rand(number, generator=draw).tolist(), 6.5)
    found = search(number, measure).run([tuple(range(0, number, 2))])
    assert measure.asked == found.tried <= 200
    assert not found.minimal
    # Every unit weighs less than 1, so there are at least seven; no unit that is removed is superfluous.
    assert 7 <= len(found.units) <= 10
    assert all(measure([tuple(u for u in found.units if u != gone)])[0] <= 0 for gone in found.units)


def test_where_nothing_is_found_the_limit_ends_the_search():
    measure = Weighed([0.0] * 50, 1.0)
    assert search(50, measure, limit=300).run([(1, 2, 3)]) is None
    assert measure.asked <= 300


def test_of_sets_of_one_size_one_that_hangs_together_is_found():
    # Units 0 and 9 go farthest, but only neighbours hang together.
    measure = Weighed([0.9, 0.6, *[0.0] * 6, 0.6, 0.9], 1.1)
    found = search(10, measure, connected=lambda units: len(units) == 1 or units[1] - units[0] == 1).run([])
    assert found.units in {(0, 1), (8, 9)}
    assert found.minimal
    assert (0, 9) in found.others
