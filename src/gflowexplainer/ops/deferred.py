"""Lists whose items are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

Value = TypeVar("Value")


class DeferredList(Sequence[Value]):
    """Values in a row, each of them computed whenever it is asked for, and not kept.

    Args:
        count: How many there are.
        compute: Computes the one at a position in ``[0, count)``.
    """

    def __init__(self, count: int, compute: Callable[[int], Value]) -> None:
        self._count, self._compute = count, compute

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Value: ...

    @overload
    def __getitem__(self, place: slice) -> list[Value]: ...

    def __getitem__(self, place: int | slice) -> Value | list[Value]:
        # A range says what positions and slices mean, and refuses what is not there.
        places = range(self._count)[place]
        return self._compute(places) if isinstance(places, int) else [self._compute(one) for one in places]
