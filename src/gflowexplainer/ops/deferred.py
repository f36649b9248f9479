"""Values that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

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
