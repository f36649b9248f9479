"""Which graphs or links a user means: positions in a list, read and refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError


def check_one(index: Any, what: str) -> None:
    """Refuses anything but one instance: an explanation of PyG is one pair of masks."""
    if index is None or (isinstance(index, Tensor | Sequence) and torch.as_tensor(index).numel() != 1):
        raise InstanceError(
            f"One call explains one {what} (got index={index!r}). Pass the 'index' of one, or call "
            "'algorithm.explain' for many at once."
        )


def positions(index: Any, count: int, what: str = "graph") -> list[int]:
    """Turns positions of graphs or links into a list, or says which one does not exist."""
    if index is None:
        return list(range(count))
    try:
        places = torch.as_tensor(index).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'index' must hold positions of {what}s (got {index!r}).") from error
    if places.dtype == torch.bool and places.numel() == count:
        places = torch.nonzero(places).flatten()
    if places.numel() == 0:
        raise InstanceError(f"'index' is empty. Pass at least one {what}.")
    if places.is_floating_point() or places.is_complex() or places.dtype == torch.bool:
        raise InstanceError(f"'index' must hold whole numbers (got {places.dtype}). Call .long() on it.")
    wrong = [place for place in places.tolist() if not 0 <= place < count]
    if wrong:
        raise InstanceError(
            f"'index' names {what} {wrong[0]}, but there are {count}. Pass positions in [0, {count}); to explain a "
            "node, use a node-level model with task_level='node'."
        )
    return places.tolist()
