import numpy as np
import pytest
import torch

from gflowexplainer.ops.hashed_random import combine, combine_numbers, uniform, uniform_numbers
from gflowexplainer.ops.numpy_segments import (
    first_places,
    flat_ranges,
    found_in,
    numbered,
    order_of_different,
    sorted_unique,
    which_of,
)
from gflowexplainer.ops.segments import ranges
from gflowexplainer.ops.sorting import find_sorted, first_of_each, unique_groups


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert one.tolist() == other.tolist()


def test_segments_and_groups_are_those_of_torch():
    draw = np.random.default_rng(0)
    for size in (0, 1, 7, 60):
        starts, counts = draw.integers(0, 99, size), draw.integers(0, 4, size)
        assert_same(flat_ranges(starts, counts), ranges(torch.from_numpy(starts), torch.from_numpy(counts)))
        keys = draw.integers(0, 12, size)
        assert_same(first_places(keys), first_of_each(torch.from_numpy(keys)))
        assert_same(which_of(keys), unique_groups(torch.from_numpy(keys)))
        haystack = np.unique(draw.integers(0, 30, size))
        position, there = found_in(haystack, keys)
        wanted, present = find_sorted(torch.from_numpy(haystack), torch.from_numpy(keys))
        assert there.tolist() == present.tolist()
        assert position[there].tolist() == wanted[present].tolist()


@pytest.mark.parametrize("bound", [None, 50, 10_000])
def test_needles_are_searched_for_or_looked_up_with_the_same_result(bound):
    random = np.random.default_rng(0)
    haystack, needles = np.sort(random.choice(50, 12, replace=False)), random.integers(0, 50, 60)
    position, found = found_in(haystack, needles, bound)
    assert (found == np.isin(needles, haystack)).all()
    assert (haystack[position[found]] == needles[found]).all()


def test_keys_that_lie_close_are_ticked_off_with_the_same_result():
    draw = np.random.default_rng(1)
    for bound in (3, 40, 10_000):
        keys = draw.integers(0, bound, 30)
        assert sorted_unique(keys, bound).tolist() == sorted_unique(keys).tolist() == np.unique(keys).tolist()
        different = draw.permutation(bound)[:30]
        assert order_of_different(different, bound).tolist() == np.argsort(different).tolist()
    assert sorted_unique(np.zeros(0, dtype=np.int64), 5).size == 0
    assert numbered(np.zeros(4, dtype=np.int64), 1).tolist() == [0, 1, 2, 3]
    assert numbered(np.array([1, 0, 1, 1, 0]), 2).tolist() == [0, 0, 1, 2, 1]


def test_random_numbers_are_those_of_torch():
    key = np.array([0, 5, -1, 2**63 - 1, -(2**63)])
    steps = np.arange(3)[:, None]
    given, wanted = (7, -3, key, steps, 1), (7, -3, torch.from_numpy(key), torch.from_numpy(steps), 1)
    assert np.array_equal(combine_numbers(*given), combine(*wanted).numpy())
    assert np.array_equal(uniform_numbers(*given), uniform(*wanted).numpy())
