"""Values that are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class Deferred(Generic[Value]):
    """A value that is computed when it is first asked for, and kept from then on.

    Args:
        compute: Computes it.
    """

    def __init__(self, compute: Callable[[], Value]) -> None:
        self._compute: Callable[[], Value] | None = compute
        self._value: Value | None = None

    @classmethod
    def of(cls, value: Value) -> Deferred[Value]:
        """Holds a value that is there already."""
        return cls(lambda: value)

    @property
    def value(self) -> Value:
        """The value."""
        if self._compute is not None:
            self._value = self._compute()
            self._compute = None
        return self._value  # type: ignore[return-value]

    def then(self, change: Callable[[Value], Value]) -> Deferred[Value]:
        """Returns what ``change`` makes of the value, computed when that is asked for."""
        return Deferred(lambda: change(self.value))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels as the value: what would compute it may not."""
        return Deferred.of, (self.value,)


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
