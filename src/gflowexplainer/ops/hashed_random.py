"""Random numbers as a pure function of what they are for, so that no batch and no device changes an answer.

A random stream that is drawn from in order gives another answer when instances are batched differently.
Here every number is a hash (SplitMix64) of integers that name its use: seed, instance, sample, step, node.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def _signed(constant: int) -> int:
    return constant - (1 << 64) if constant >= 1 << 63 else constant


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)
_MASK = (1 << 64) - 1


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Shifts without carrying the sign along, which ``>>`` on a signed tensor does."""
    return (x >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def mix(x: Tensor) -> Tensor:
    """Scatters int64 values over all 64 bits (SplitMix64); equal inputs give equal outputs everywhere."""
    z = x + _GOLDEN
    z.bitwise_xor_(_shift_right(z, 30)).mul_(_FIRST)
    z.bitwise_xor_(_shift_right(z, 27)).mul_(_SECOND)
    return z.bitwise_xor_(_shift_right(z, 31))


def _mix_number(x: int) -> int:
    """Does the same to one plain number, without a tensor."""
    z = (x + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


@lru_cache(maxsize=256)
def combine_integers(*parts: int) -> int:
    """Does what :func:`combine` does to plain numbers, as a signed one."""
    number = 0
    for part in parts:
        number = _mix_number(number + part)
    return _signed(number)


def combine(*parts: Tensor | int) -> Tensor:
    """Hashes several integers, of shapes that broadcast, into one int64; the order of the parts matters."""
    if all(part.device.type == "cpu" for part in parts if isinstance(part, Tensor)):
        if not any(isinstance(part, Tensor) for part in parts):
            return torch.tensor(combine_integers(*map(int, parts)))
        # The same numbers in a tenth of the time where there are few: NumPy begins sooner.
        found = combine_numbers(*(part.numpy() if isinstance(part, Tensor) else int(part) for part in parts))
        return torch.from_numpy(found).reshape(np.broadcast_shapes(*(_shape(part) for part in parts)))
    number, rest = 0, list(parts)
    while rest and not isinstance(rest[0], Tensor):
        number = _mix_number(number + int(rest.pop(0)))
    if not rest:
        return torch.tensor(_signed(number))
    device = next((part.device for part in rest if isinstance(part, Tensor) and part.dim()), None)
    key: Tensor | int = _signed(number)
    for part in rest:
        term = part.to(device) if isinstance(part, Tensor) and device is not None else part
        key = mix(key + term if isinstance(term, Tensor) else torch.as_tensor(key + term))
    return torch.as_tensor(key)


def _shape(part: Tensor | int) -> tuple[int, ...]:
    return tuple(part.shape) if isinstance(part, Tensor) else ()


def uniform(*parts: Tensor | int) -> Tensor:
    """Returns a number in the open interval (0, 1) for each combination of ``parts``, as float64."""
    return (_shift_right(combine(*parts), 12).double() + 0.5) * 2.0**-52


_UNSIGNED = tuple(
    np.array(number, dtype=np.uint64) for number in (_GOLDEN & _MASK, _FIRST & _MASK, _SECOND & _MASK, 30, 27, 31)
)
"""The numbers of SplitMix64 as NumPy takes them soonest: three constants, three shifts, each an array without axes."""
_UNIFORM = np.array(12, dtype=np.uint64), np.array(0.5), np.array(2.0**-52)


def _mix_numbers(x: NDArray[Any]) -> NDArray[Any]:
    """Does what :func:`mix` does to unsigned numbers in NumPy."""
    golden, first, second, shift, next_shift, last_shift = _UNSIGNED
    z = x + golden
    shifted = z >> shift
    z ^= shifted
    z *= first
    z ^= np.right_shift(z, next_shift, out=shifted)
    z *= second
    z ^= np.right_shift(z, last_shift, out=shifted)
    return z


def combine_numbers(*parts: NDArray[Any] | int) -> NDArray[Any]:
    """Does what :func:`combine` does, in NumPy: int64 arrays of shapes that broadcast, or plain numbers."""
    number, rest = 0, list(parts)
    while rest and isinstance(first := rest[0], int):
        number = _mix_number(number + first)
        rest.pop(0)
    key: NDArray[Any] = np.array([number], dtype=np.uint64)
    for part in rest:
        if isinstance(part, int):
            key = _mix_numbers(key + np.array(part & _MASK, dtype=np.uint64) if part else key)
        else:
            key = _mix_numbers(key + part.astype(np.int64, copy=False).view(np.uint64))
    return key.view(np.int64)


def uniform_numbers(*parts: NDArray[Any] | int) -> NDArray[Any]:
    """Does what :func:`uniform` does, in NumPy."""
    bits, half, unit = _UNIFORM
    number = (combine_numbers(*parts).view(np.uint64) >> bits).astype(np.float64)
    number += half
    number *= unit
    return number


def hash_rows(values: Tensor) -> Tensor:
    """Hashes each row of a tensor ``[R, ...]`` by its contents, shape ``[R]``."""
    bits = values.detach().reshape(values.size(0), -1).double().contiguous().view(torch.int64)
    return mix(bits + mix(torch.arange(bits.size(1), device=bits.device))).sum(dim=1)
