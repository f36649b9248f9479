"""Whole numbers in order: which are there, and where. On a CPU NumPy sorts them, several times as fast as torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def order_of(keys: Tensor) -> Tensor:
    """Gives the order ``[N]`` that sorts keys; equal ones stand in any order."""
    if keys.device.type != "cpu":
        return torch.argsort(keys)
    return torch.from_numpy(np.argsort(keys.numpy()))


def unique(keys: Tensor) -> Tensor:
    """Lists the different keys of ``[N]``, ascending."""
    if keys.device.type != "cpu":
        return torch.unique(keys)
    return torch.unique_consecutive(torch.from_numpy(np.sort(keys.numpy())))


def unique_groups(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Lists the different keys of ``[N]``, ascending, and which of them each key is, shape ``[N]``."""
    if keys.device.type != "cpu":
        return torch.unique(keys, return_inverse=True)
    order = order_of(keys)
    found, place = torch.unique_consecutive(keys[order], return_inverse=True)
    group = torch.empty_like(order)
    group[order] = place
    return found, group


def first_of_each(keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lists the different keys of ``[N]``, ascending, where each occurs first, and which of them each key is."""
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
