"""Whole numbers in order: which are there, and where. On a CPU NumPy sorts them, several times as fast as torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.ops.segments import Array

_CLOSE = 4
"""Keys lie close where there is one for each so many numbers."""


def unique(keys: Tensor) -> Tensor:
    """Lists the different keys of ``[N]``, ascending."""
    if keys.device.type != "cpu":
        return torch.unique(keys)
    return torch.unique_consecutive(torch.from_numpy(np.sort(keys.numpy())))


def first_of_each(keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lists the different keys of ``[N]``, ascending, where each occurs first, and which of them each key is."""
    if keys.device.type == "cpu":
        return tuple(map(torch.from_numpy, first_places(keys.numpy())))  # type: ignore[return-value]
    found, group = torch.unique(keys, return_inverse=True)
    position = torch.arange(keys.numel(), device=keys.device)
    first = torch.full_like(found, keys.numel()).scatter_reduce_(0, group, position, "amin")
    return found, first, group


def first_places(keys: Array) -> tuple[Array, Array, Array]:
    """Does what :func:`first_of_each` does, for an array. Keys that lie close are ticked off, not sorted."""
    if keys.size == 0:
        return keys, keys, keys
    place = np.arange(keys.size)
    least = int(keys.min())
    span = int(keys.max()) - least + 1
    if span <= _CLOSE * keys.size:
        near = keys - least
        first = np.full(span, keys.size)
        np.minimum.at(first, near, place)
        there = first < keys.size
        return there.nonzero()[0] + least, first[there], (there.cumsum() - 1)[near]
    # Keys are often a few ascending lists behind each other: a stable sort merges these.
    order = keys.argsort(kind="stable")
    ordered = keys[order]
    new = np.ones(keys.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    group = np.empty(keys.size, dtype=np.int64)
    group[order] = new.cumsum() - 1
    return ordered[new], order[new], group


def find_sorted(haystack: Tensor, needles: Tensor) -> tuple[Tensor, Tensor]:
    """Looks ``needles`` up in a sorted tensor without repeats.

    Returns:
        Positions, and whether each needle was really there; a position is only meaningful where it was.
    """
    if haystack.numel() == 0:
        return torch.zeros_like(needles), torch.zeros_like(needles, dtype=torch.bool)
    position = torch.searchsorted(haystack, needles).clamp_(max=haystack.numel() - 1)
    return position, haystack[position] == needles


def found_in(haystack: Array, needles: Array) -> tuple[Array, Array]:
    """Does what :func:`find_sorted` does, for arrays."""
    if haystack.size == 0:
        return np.zeros(needles.shape, dtype=np.int64), np.zeros(needles.shape, dtype=bool)
    position = np.minimum(haystack.searchsorted(needles), haystack.size - 1)
    return position, haystack[position] == needles
