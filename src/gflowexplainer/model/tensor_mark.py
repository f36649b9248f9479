"""Finds out whether tensors are what they were, without keeping them alive.

Torch counts what is written to a tensor; some of the contents are compared too, as ``tensor.data`` can be written to
uncounted.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_COMPARED = 8
"""Entries of a tensor whose contents are compared."""
_NUMPY = {torch.float32, torch.float64, torch.int64, torch.int32, torch.bool}
"""Types whose contents NumPy can look at without a copy."""


class TensorMark:
    """Returns whether tensors are still the same ones, with the contents that they had.

    Args:
        tensors: The tensors, by name.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._seen = {name: _SeenTensor(tensor) for name, tensor in tensors.items()}
        self._some = self._entries()

    def fits(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether these are the same tensors and none was written to."""
        if tensors.keys() != self._seen.keys():
            return False
        seen = self._seen
        return all(seen[name].fits(tensor) for name, tensor in tensors.items()) and self._some == self._entries()

    def _entries(self) -> bytes:
        """Returns a few entries of each tensor; those on a GPU are fetched together."""
        some = [seen.entries for seen in self._seen.values()]
        here = [entries.tobytes() for entries in some if isinstance(entries, np.ndarray)]
        elsewhere = [entries.clone().view(torch.uint8) for entries in some if isinstance(entries, Tensor)]
        if elsewhere:
            here.append(torch.cat(elsewhere).cpu().numpy().tobytes())
        return b"".join(here)


class _SeenTensor:
    """A tensor as it was, held weakly.

    Args:
        tensor: The tensor.

    Attributes:
        entries: A view of a few of its entries, spread over it. It is forgotten as soon as the tensor is gone, so that
            no memory is held for it, and it is only to be looked at while the tensor :meth:`fits`.
    """

    __slots__ = ("__weakref__", "_facts", "_tensor", "entries")

    def __init__(self, tensor: Tensor) -> None:
        own = weakref.ref(self)

        def forget(_: object) -> None:
            seen = own()
            if seen is not None:
                seen.entries = None

        self._tensor, self._facts = weakref.ref(tensor, forget), _facts(tensor)
        self.entries: NDArray[Any] | Tensor | None = _some(tensor)

    def fits(self, tensor: Tensor) -> bool:
        """Whether this is the tensor, where it was, and nothing that torch counts was written to it."""
        facts = self._facts
        return self._tensor() is tensor and facts is not None and facts == _facts(tensor)


def _facts(tensor: Tensor) -> tuple[Any, ...] | None:
    """Returns what changes when a tensor is replaced or written to; ``None`` where torch does not count that."""
    if tensor.is_inference() or tensor.layout != torch.strided:
        return None
    return tensor.data_ptr(), tensor._version, tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _some(tensor: Tensor) -> NDArray[Any] | Tensor | None:
    """Returns a view of a few entries of a tensor, spread over it; ``None`` if it has no such thing."""
    if tensor.layout != torch.strided or tensor.is_neg() or tensor.is_conj():
        return None
    flat = (tensor if tensor.is_contiguous() else tensor[:1]).detach().reshape(-1)
    step = max(1, flat.size(0) // _COMPARED)
    some = flat[: step * (_COMPARED + 1) : step]
    return some.numpy() if tensor.is_cpu and tensor.dtype in _NUMPY else some
