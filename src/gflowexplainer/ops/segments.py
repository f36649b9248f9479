"""Arithmetic on flat arrays that are cut into segments, as PyG batches are: no padding, no Python loops."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


def pointers(counts: Tensor) -> Tensor:
    """Turns segment lengths ``[S]`` into segment boundaries ``[S + 1]`` that start at 0."""
    ptr = counts.new_zeros(counts.numel() + 1)
    torch.cumsum(counts, 0, out=ptr[1:])
    return ptr


def segment_ids(counts: Tensor, total: int | None = None) -> Tensor:
    """Names the segment of every element: lengths ``[2, 0, 3]`` give ``[0, 0, 2, 2, 2]``."""
    return torch.repeat_interleave(counts, output_size=total)


def ranges(starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Concatenates the ranges ``starts[i] .. starts[i] + counts[i]``.

    Returns:
        The segment ``i`` of every element and the element itself, both of shape ``[sum(counts)]``.
    """
    if counts.device.type == "cpu":
        return tuple(map(torch.from_numpy, flat_ranges(starts.numpy(), counts.numpy())))  # type: ignore[return-value]
    owner = segment_ids(counts)
    first = pointers(counts)[:-1]
    position = torch.arange(owner.numel(), device=counts.device)
    return owner, position + (starts - first)[owner]


def flat_ranges(starts: Array, counts: Array) -> tuple[Array, Array]:
    """Does what :func:`ranges` does, for arrays."""
    owner = np.arange(counts.size).repeat(counts)
    return owner, np.arange(owner.size) + (starts - (counts.cumsum() - counts))[owner]


def slices(cost: Tensor, budget: int) -> Iterator[slice]:
    """Cuts work of given cost ``[Q]`` into slices whose cost together stays within a budget, one item at least."""
    total = torch.cumsum(cost, 0)
    begin, count = 0, cost.numel()
    while begin < count:
        done = total[begin - 1] if begin else 0
        end = int(torch.searchsorted(total, done + budget, right=True))
        end = max(end, begin + 1)
        yield slice(begin, end)
        begin = end


def segment_sum(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Sums ``values`` of shape ``[N, ...]`` within each segment, giving ``[num_segments, ...]``."""
    out = values.new_zeros((num_segments, *values.shape[1:]))
    return out.index_add_(0, segment, values)


def segment_max(values: Tensor, segment: Tensor, num_segments: int, empty: float = -torch.inf) -> Tensor:
    """Takes the largest of ``values`` ``[N]`` in each segment; an empty segment gives ``empty``."""
    out = values.new_full((num_segments,), empty)
    return out.scatter_reduce_(0, segment, values, "amax", include_self=True)


def segment_argmax(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Finds the position of the largest value of each segment, the first one on ties, ``-1`` if it is empty."""
    best = segment_max(values, segment, num_segments)
    hit = torch.nonzero(values == best[segment]).flatten()
    out = torch.full((num_segments,), values.numel(), device=values.device, dtype=torch.long)
    out.scatter_reduce_(0, segment[hit], hit, "amin", include_self=True)
    return torch.where(out == values.numel(), -1, out)


def segment_logsumexp(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Computes ``log(sum(exp(values)))`` within each segment, ``-inf`` where it is empty; safe to differentiate."""
    top = segment_max(values.detach(), segment, num_segments)
    # An empty or all -inf segment has no finite shift; 0 keeps exp() and its gradient finite.
    shift = torch.where(torch.isfinite(top), top, 0.0)
    total = segment_sum((values - shift[segment]).exp(), segment, num_segments)
    empty = total == 0
    return torch.where(empty, -torch.inf, torch.where(empty, 1.0, total).log() + shift)
