"""Sorting of whole numbers, held against plain loops, torch and NumPy."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gflowexplainer.ops.sorting import find_sorted, first_of_each, found_in, unique

keys = st.lists(st.integers(-(2**62), 2**62) | st.integers(-3, 3), max_size=40) | st.lists(st.integers(5, 40))
"""Keys that lie far apart, and close ones."""


@settings(deadline=None, max_examples=60)
@given(keys)
def test_different_keys_are_those_of_torch_and_stand_where_each_occurs_first(values: list[int]) -> None:
    tensor = torch.tensor(values, dtype=torch.long)
    wanted, of = torch.unique(tensor, return_inverse=True)
    found, first, group = first_of_each(tensor)
    assert torch.equal(unique(tensor), wanted)
    assert torch.equal(found, wanted)
    assert torch.equal(group, of)
    assert first.tolist() == [values.index(key) for key in found.tolist()]


@settings(deadline=None, max_examples=60)
@given(keys, keys)
def test_needles_are_found_where_they_are(haystack: list[int], needles: list[int]) -> None:
    sorted_, wanted = torch.tensor(haystack, dtype=torch.long).unique(), torch.tensor(needles, dtype=torch.long)
    for position, found in (find_sorted(sorted_, wanted), found_in(sorted_.numpy(), wanted.numpy())):
        assert found.tolist() == np.isin(wanted, sorted_).tolist()
        assert sorted_[position[found]].tolist() == wanted[found].tolist()
