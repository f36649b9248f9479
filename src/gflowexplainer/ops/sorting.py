"""Whole numbers in order: which are there, and where. On a CPU NumPy sorts them, several times as fast as torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.ops.numpy_segments import first_places

_CLOSE = 4
"""Keys lie close where there is one for each so many numbers."""


def order_of(keys: Tensor, *, runs: bool = False) -> Tensor:
    """Returns the order ``[N]`` that sorts keys; equal ones stand in any order.

    Args:
        keys: The keys.
        runs: Whether they are a few ascending lists behind each other: a stable sort merges them, far faster.
    """
    if keys.device.type != "cpu":
        return torch.argsort(keys)
    return torch.from_numpy(np.argsort(keys.numpy(), kind="stable" if runs else None))


def unique(keys: Tensor, *, runs: bool = False) -> Tensor:
    """Lists the different keys of ``[N]``, ascending; ``runs`` as in :func:`order_of`."""
    if keys.device.type != "cpu":
        return torch.unique(keys)
    return torch.unique_consecutive(torch.from_numpy(np.sort(keys.numpy(), kind="stable" if runs else None)))


def unique_groups(keys: Tensor, *, runs: bool = False, bound: int | None = None) -> tuple[Tensor, Tensor]:
    """Lists the different keys of ``[N]``, ascending, and which of them each key is, shape ``[N]``.

    Args:
        keys: The keys.
        runs: See :func:`order_of`.
        bound: What all of them are below, none of them being negative. Keys that lie close are ticked off, not sorted.
    """
    if bound is not None and bound <= _CLOSE * keys.numel():
        there = torch.zeros(bound, dtype=torch.bool, device=keys.device)
        there[keys] = True
        return torch.nonzero(there).flatten(), (torch.cumsum(there, 0) - 1)[keys]
    if keys.device.type != "cpu":
        return torch.unique(keys, return_inverse=True)
    order = order_of(keys, runs=runs)
    found, place = torch.unique_consecutive(keys[order], return_inverse=True)
    group = torch.empty_like(order)
    group[order] = place
    return found, group


def first_of_each(keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lists the different keys of ``[N]``, ascending, where each occurs first, and which of them each key is."""
    if keys.device.type == "cpu":
        return tuple(map(torch.from_numpy, first_places(keys.numpy())))  # type: ignore[return-value]
    found, group = unique_groups(keys)
    position = torch.arange(keys.numel(), device=keys.device)
    first = torch.full_like(found, keys.numel()).scatter_reduce_(0, group, position, "amin")
    return found, first, group


def find_sorted(haystack: Tensor, needles: Tensor) -> tuple[Tensor, Tensor]:
    """Looks ``needles`` up in a sorted tensor without repeats.

    Returns:
        Positions, and whether each needle was really there; a position is only meaningful where it was.
    """
    if haystack.numel() == 0:
        return torch.zeros_like(needles), torch.zeros_like(needles, dtype=torch.bool)
    position = torch.searchsorted(haystack, needles).clamp_(max=haystack.numel() - 1)
    return position, haystack[position] == needles
