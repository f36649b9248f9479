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

from gflowexplainer.ops.numpy_segments import counted

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


def even_numbers(at: Array, draw: Array, num_states: int) -> Array:
    """Does what :func:`even_draws` does, in NumPy."""
    if num_states == at.size:
        # Each is alone at its state.
        return draw
    if num_states == 1:
        return (counted(at.size) / at.size + draw[0]) % _ONE
    order = at.argsort(kind="stable")
    visits = np.bincount(at, minlength=num_states)
    first = np.add.accumulate(visits)
    first -= visits
    place = np.empty(at.size)
    place[order] = counted(at.size) - first.repeat(visits)
    place /= visits[at]
    place += draw[order[first]][at]
    place %= _ONE
    return place
