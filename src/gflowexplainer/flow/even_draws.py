"""Random numbers that share the actions of a state out among the rollouts that are at it.

Rollouts that choose each by itself crowd where chance has it and leave gaps. Here the interval (0, 1) is cut into as
many equal pieces as there are rollouts at the state, and each gets a number from a piece of its own. An action of
probability ``p`` is then taken by ``p`` of them, up to one, so that the same number of rollouts says more about the
policy. Which rollout gets which piece is drawn, so that the number of any one of them is uniform as before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]
_BELOW_ONE = 1 - 2.0**-53


def even_draws(at: Tensor, draw: Tensor, num_states: int) -> Tensor:
    """Returns a number in (0, 1) for each of ``V`` rollouts, shape ``[V]``.

    Args:
        at: State that each is at, shape ``[V]``; some rollout is at every state.
        draw: Two independent numbers in (0, 1) of each, shape ``[V, 2]``.
        num_states: Number of states.
    """
    order = torch.argsort(at + draw[:, 0], stable=True)
    visits = torch.zeros(num_states, dtype=torch.long, device=at.device).index_add_(0, at, torch.ones_like(at))
    first = torch.cumsum(visits, 0) - visits
    place = torch.empty_like(at)
    place[order] = torch.arange(at.numel(), device=at.device)
    within = draw[:, 1][order[first]]
    return ((place - first[at] + within[at]) / visits[at]).clamp(max=_BELOW_ONE)


def even_numbers(at: Array, draw: Array, within: Array, num_states: int) -> Array:
    """Does what :func:`even_draws` does, in NumPy, with both numbers of each rollout, shapes ``[V]``."""
    if num_states == at.size:
        # Each is alone at its state.
        return within
    order = (at + draw).argsort(kind="stable")
    visits = np.bincount(at, minlength=num_states)
    first = visits.cumsum() - visits
    place = np.empty_like(at)
    place[order] = np.arange(at.size)
    number = place - first.take(at) + within.take(order.take(first)).take(at)
    return np.minimum(number / visits.take(at), _BELOW_ONE)
