"""Random numbers as a pure function of what they are for, so that no batch and no device changes an answer.

A random stream that is drawn from in order gives another answer when instances are batched differently.
Here every number is a hash (SplitMix64) of integers that name its use: seed, instance, sample, step, node.
"""

import torch
from torch import Tensor


def _signed(constant: int) -> int:
    return constant - (1 << 64) if constant >= 1 << 63 else constant


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Shifts without carrying the sign along, which ``>>`` on a signed tensor does."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def mix(x: Tensor) -> Tensor:
    """Scatters int64 values over all 64 bits (SplitMix64); equal inputs give equal outputs everywhere."""
    z = x + _GOLDEN
    z = (z ^ _shift_right(z, 30)) * _FIRST
    z = (z ^ _shift_right(z, 27)) * _SECOND
    return z ^ _shift_right(z, 31)


def combine(*parts: Tensor | int) -> Tensor:
    """Hashes several integers, of shapes that broadcast, into one int64; the order of the parts matters."""
    tensors = [p if isinstance(p, Tensor) else torch.tensor(p) for p in parts]
    device = next((t.device for t in tensors if t.dim()), tensors[0].device)
    key = torch.zeros((), dtype=torch.long, device=device)
    for part in tensors:
        key = mix(key + part.to(device))
    return key


def uniform(*parts: Tensor | int) -> Tensor:
    """Gives a number in the open interval (0, 1) for each combination of ``parts``, as float64."""
    return (_shift_right(combine(*parts), 12).double() + 0.5) * 2.0**-52


def gumbel(*parts: Tensor | int) -> Tensor:
    """Gives standard Gumbel noise: the largest of ``logit + gumbel`` is a sample of the softmax."""
    return -(-uniform(*parts).log()).log()
