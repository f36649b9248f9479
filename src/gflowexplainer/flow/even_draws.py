"""Random numbers that share the actions of a state out among the rollouts that are at it.

Rollouts that choose each by itself crowd where chance has it and leave gaps. Here the numbers of the ``n`` rollouts
that are at a state lie ``1 / n`` apart on a circle, which is turned at random. An action of probability ``p`` is then
taken by ``p`` of them, up to one, so that the same number of rollouts says more about the policy. The number of any one
of them is uniform as before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.ops.numpy_segments import Groups, counted

Array = NDArray[Any]
_ONE = np.ones(())
"""NumPy takes an array without axes sooner than a number."""


def even_draws(at: Tensor, draw: Tensor, num_states: int) -> Tensor:
    """Returns a number in [0, 1) for each of ``V`` rollouts, shape ``[V]``.

    Args:
        at: State that each is at, shape ``[V]``; some rollout is at every state.
        draw: A random number in (0, 1) of each, shape ``[V]``; that of the first rollout at a state turns its circle.
        num_states: Number of states.
    """
    order = torch.argsort(at, stable=True)
    visits = torch.zeros(num_states, dtype=torch.long, device=at.device).index_add_(0, at, torch.ones_like(at))
    first, there = torch.cumsum(visits, 0) - visits, at[order]
    place = torch.arange(at.numel(), device=at.device) - first[there]
    number = torch.empty_like(draw)
    number[order] = (place / visits[there].double() + draw[order[first]][there]) % 1
    return number


def even_numbers(met: Groups, draw: Array) -> Array:
    """Does what :func:`even_draws` does, in NumPy, for rollouts ``met`` at their states."""
    _, order, ptr, at = met
    begin, count = ptr[:-1], at.size
    if begin.size == count:
        # Each is alone at its state.
        return draw
    if begin.size == 1:
        return (counted(count) / count + draw[0]) % _ONE
    visits = ptr[1:] - begin
    place = np.empty(count)
    place[order] = counted(count) - begin.repeat(visits)
    place /= visits[at]
    place += draw[order[begin]][at]
    place %= _ONE
    return place
