"""Segment arithmetic, held against plain loops."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gflowexplainer.ops.segments import (
    pointers,
    ranges,
    segment_argmax,
    segment_ids,
    segment_logsumexp,
    segment_max,
    segment_sum,
)

NUM_SEGMENTS = 4
lengths = st.lists(st.integers(0, 4), max_size=6)
finite = st.floats(-50, 50, width=32)
# Values with the segment of each, in any order; some segments stay empty.
entries = st.lists(st.tuples(finite | st.just(-math.inf), st.integers(0, NUM_SEGMENTS - 1)), max_size=12)


def unzip(pairs: list[tuple[float, int]]) -> tuple[Tensor, Tensor]:
    values = torch.tensor([value for value, _ in pairs], dtype=torch.double)
    return values, torch.tensor([segment for _, segment in pairs], dtype=torch.long)


def grouped(pairs: list[tuple[float, int]]) -> list[list[tuple[int, float]]]:
    """Position and value of the entries of each segment."""
    return [[(i, value) for i, (value, s) in enumerate(pairs) if s == segment] for segment in range(NUM_SEGMENTS)]


@settings(deadline=None, max_examples=40)
@given(lengths)
def test_lengths_become_boundaries_and_ids(counts: list[int]) -> None:
    tensor = torch.tensor(counts, dtype=torch.long)
    assert pointers(tensor).tolist() == [sum(counts[:i]) for i in range(len(counts) + 1)]
    ids = [i for i, count in enumerate(counts) for _ in range(count)]
    assert segment_ids(tensor).tolist() == ids
    assert segment_ids(tensor, sum(counts)).tolist() == ids


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), max_size=6))
def test_ranges_lie_behind_each_other(pairs: list[tuple[int, int]]) -> None:
    starts, counts = (torch.tensor([p[i] for p in pairs], dtype=torch.long) for i in (0, 1))
    owner, element = ranges(starts, counts)
    wanted = [(i, start + step) for i, (start, count) in enumerate(pairs) for step in range(count)]
    assert list(zip(owner.tolist(), element.tolist(), strict=True)) == wanted


@settings(deadline=None, max_examples=40)
@given(entries)
def test_reductions_equal_a_loop(pairs: list[tuple[float, int]]) -> None:
    values, segment = unzip(pairs)
    groups = grouped(pairs)
    torch.testing.assert_close(
        segment_sum(values, segment, NUM_SEGMENTS).tolist(), [sum((v for _, v in g), 0.0) for g in groups]
    )
    assert segment_max(values, segment, NUM_SEGMENTS).tolist() == [
        max((v for _, v in g), default=-math.inf) for g in groups
    ]
    assert segment_argmax(values, segment, NUM_SEGMENTS).tolist() == [
        max(g, key=lambda entry: (entry[1], -entry[0]))[0] if g else -1 for g in groups
    ]


def test_sum_keeps_further_dimensions() -> None:
    values = torch.arange(12.0).view(3, 2, 2)
    total = segment_sum(values, torch.tensor([1, 1, 3]), 4)
    assert total.shape == (4, 2, 2)
    assert torch.equal(total[1], values[0] + values[1])
    assert torch.equal(total[3], values[2])
    assert not total[[0, 2]].any()


def test_max_of_an_empty_segment_is_what_is_asked_for() -> None:
    assert segment_max(torch.tensor([-3.0]), torch.tensor([1]), 2, empty=-7.0).tolist() == [-7.0, -3.0]


@settings(deadline=None, max_examples=40)
@given(entries)
def test_logsumexp_and_its_gradient_equal_torch(pairs: list[tuple[float, int]]) -> None:
    values, segment = unzip(pairs)
    values.requires_grad_()
    ours = segment_logsumexp(values, segment, NUM_SEGMENTS)
    for number in range(NUM_SEGMENTS):
        inside = values[segment == number]
        wanted = torch.logsumexp(inside, 0) if inside.numel() else torch.tensor(-math.inf, dtype=torch.double)
        torch.testing.assert_close(ours[number], wanted)
    (gradient,) = torch.autograd.grad(torch.where(ours.isfinite(), ours, 0).sum(), values)
    # The gradient of logsumexp is the softmax; where nothing is finite there is none.
    for number in range(NUM_SEGMENTS):
        inside = values[segment == number].detach()
        wanted = inside.softmax(0) if inside.numel() and inside.isfinite().any() else torch.zeros_like(inside)
        torch.testing.assert_close(gradient[segment == number], wanted)


def test_logsumexp_has_a_right_gradient_beside_empty_segments() -> None:
    values = torch.tensor([0.3, -1.0, 2.0, 5.0], dtype=torch.double, requires_grad=True)
    segment = torch.tensor([0, 0, 2, 2])
    assert torch.autograd.gradcheck(lambda v: segment_logsumexp(v, segment, 4)[[0, 2]], values)


@pytest.mark.parametrize("size", [-1e4, 1e4])
def test_logsumexp_does_not_overflow(size: float) -> None:
    total = segment_logsumexp(torch.tensor([size, size]), torch.tensor([0, 0]), 1)
    assert total.item() == pytest.approx(size + math.log(2))
