"""Random numbers as a pure function of what they are for, so that no batch and no device changes an answer.

A random stream that is drawn from in order gives another answer when instances are batched differently.
Here every number is a hash (SplitMix64) of integers that name its use: seed, stream, instance, sample, step, node.
"""

from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

Numbers = TypeVar("Numbers", bound=Any)
"""A tensor or an array of int64."""
_MASK = (1 << 64) - 1


class Stream(IntEnum):
    """What random numbers are drawn for. The values are part of every answer: a new use gets a new number."""

    training = 0
    shuffling = 1
    locating = 2
    measuring = 5
    contexts = 6
    explaining = 100
    reference_nodes = 101
    random_parts = 102
    searching = 103


def _signed(number: int) -> int:
    number &= _MASK
    return number - (1 << 64) if number >= 1 << 63 else number


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


def _shift_right(x: Numbers, bits: int) -> Numbers:
    """Shifts without carrying the sign along, which ``>>`` on signed numbers does."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def mix(x: Numbers) -> Numbers:
    """Scatters int64 values over all 64 bits (SplitMix64); equal inputs give equal outputs everywhere."""
    z = x + _GOLDEN
    z ^= _shift_right(z, 30)
    z *= _FIRST
    z ^= _shift_right(z, 27)
    z *= _SECOND
    z ^= _shift_right(z, 31)
    return z


@lru_cache(maxsize=256)
def combine_integers(*parts: int) -> int:
    """Does what :func:`combine` does to plain numbers, without a tensor."""
    number = 0
    for part in parts:
        z = (number + part + _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * _FIRST) & _MASK
        z = ((z ^ (z >> 27)) * _SECOND) & _MASK
        number = z ^ (z >> 31)
    return _signed(number)


def combine(*parts: Tensor | int) -> Tensor:
    """Hashes several integers, of shapes that broadcast, into one int64; the order of the parts matters."""
    first = next((place for place, part in enumerate(parts) if isinstance(part, Tensor)), len(parts))
    key: Any = combine_integers(*map(int, parts[:first]))
    tensors = [part for part in parts[first:] if isinstance(part, Tensor)]
    if not tensors:
        return torch.tensor(key)
    # On a CPU NumPy hashes few numbers in a tenth of the time: it begins sooner.
    on_cpu = all(part.is_cpu for part in tensors)
    device = next((part.device for part in tensors if part.dim()), tensors[0].device)
    with np.errstate(over="ignore"):
        for part in parts[first:]:
            if isinstance(part, Tensor):
                key = mix(key + (part.long().numpy() if on_cpu else part.to(device)))
            else:
                key = mix(key + _signed(part))
    return torch.from_numpy(np.asarray(key)) if on_cpu else key


def uniform(*parts: Tensor | int) -> Tensor:
    """Returns a number in the open interval (0, 1) for each combination of ``parts``, as float64."""
    return (_shift_right(combine(*parts), 12).double() + 0.5) * 2.0**-52


def hash_rows(values: Tensor) -> Tensor:
    """Hashes each row of a tensor ``[R, ...]`` by its contents, shape ``[R]``."""
    bits = values.detach().reshape(values.size(0), -1).double().contiguous().view(torch.int64)
    return mix(bits + mix(torch.arange(bits.size(1), device=bits.device))).sum(dim=1)
