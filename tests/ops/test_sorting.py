"""Sorting of whole numbers, held against plain loops and torch."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gflowexplainer.ops.sorting import find_sorted, first_of_each, order_of, unique, unique_groups

keys = st.lists(st.integers(-(2**62), 2**62) | st.integers(-3, 3), max_size=40)


@settings(deadline=None, max_examples=60)
@given(keys)
def test_keys_are_sorted_as_torch_sorts_them(values: list[int]) -> None:
    tensor = torch.tensor(values, dtype=torch.long)
    assert tensor[order_of(tensor)].tolist() == sorted(values)
    found, group = torch.unique(tensor, return_inverse=True)
    assert torch.equal(unique(tensor), found)
    for one, other in zip(unique_groups(tensor), (found, group), strict=True):
        assert one.dtype == torch.long
        assert torch.equal(one, other)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=3), st.sampled_from([31, 60, 10_000]))
def test_ascending_lists_and_close_keys_make_no_difference(lists: list[list[int]], bound: int) -> None:
    tensor = torch.tensor([key for each in lists for key in sorted(each)], dtype=torch.long)
    found, group = torch.unique(tensor, return_inverse=True)
    assert torch.equal(tensor[order_of(tensor, runs=True)], tensor.sort().values)
    assert torch.equal(unique(tensor, runs=True), found)
    for how in ({"runs": True}, {"bound": bound}):
        for one, other in zip(unique_groups(tensor, **how), (found, group), strict=True):
            assert one.dtype == torch.long
            assert torch.equal(one, other)


def test_keys_that_are_not_contiguous() -> None:
    every = torch.tensor([[5, 1], [3, 2], [5, 9]])[:, 0]
    assert unique(every).tolist() == [3, 5]
    assert unique_groups(every)[1].tolist() == [1, 0, 1]


@settings(deadline=None, max_examples=40)
@given(st.sets(st.integers(-20, 20), max_size=10), st.lists(st.integers(-25, 25), max_size=10))
def test_find_sorted_equals_a_dictionary(hay: set[int], needles: list[int]) -> None:
    places = {value: i for i, value in enumerate(sorted(hay))}
    position, found = find_sorted(torch.tensor(sorted(hay), dtype=torch.long), torch.tensor(needles, dtype=torch.long))
    assert found.tolist() == [needle in places for needle in needles]
    assert position[found].tolist() == [places[needle] for needle in needles if needle in places]


def test_find_sorted_takes_needles_of_any_shape() -> None:
    position, found = find_sorted(torch.tensor([2, 5]), torch.tensor([[5, 2], [9, 0]]))
    assert found.tolist() == [[True, True], [False, False]]
    assert position[0].tolist() == [1, 0]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-4, 4), max_size=10))
def test_first_of_each_equals_a_loop(keys: list[int]) -> None:
    unique, first, group = first_of_each(torch.tensor(keys, dtype=torch.long))
    assert unique.tolist() == sorted(set(keys))
    assert first.tolist() == [keys.index(key) for key in sorted(set(keys))]
    assert unique[group].tolist() == keys
