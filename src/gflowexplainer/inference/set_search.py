"""Searches small sets of units (nodes or edges) whose removal brings about a change: guided, then shrunk, then checked.

The search knows nothing of graphs: it is given units by number, sets to begin with, and a function that measures how
far removing a set goes. It is deterministic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

Units = tuple[int, ...]
"""Ascending numbers of units."""
_BEAM = 4
_SHRUNK = 4
_AT_ONCE = 512
_CONSIDERED = 128
_LARGE = 32


@dataclass(frozen=True)
class FoundSet:
    """A set whose removal brings about the change.

    Attributes:
        units: The set.
        others: Further sets of the same size that do, best first.
        minimal: Whether every smaller set was tried.
        tried: Sets that were tried in all.
    """

    units: Units
    others: tuple[Units, ...]
    minimal: bool
    tried: int


class SetSearch:
    """Finds a small set of units that brings about a change.

    Args:
        num_units: Units ``0 .. num_units - 1``.
        measure: Measures for many sets how far each goes; what is above 0 is the change.
        connected: Says whether a set hangs together; among sets of equal size those that do go first.
        limit: Sets that the guided search may try.
        exhaustive: Sets that the check for smaller ones may try on top of that.
    """

    def __init__(
        self,
        num_units: int,
        measure: Callable[[Sequence[Units]], Sequence[float]],
        connected: Callable[[Units], bool],
        *,
        limit: int,
        exhaustive: int,
    ) -> None:
        self.num_units, self.limit, self.exhaustive = num_units, limit, exhaustive
        self._measure, self._connected = measure, connected
        self._known: dict[Units, float] = {}
        self._joined: dict[Units, bool] = {}
        self._considered: list[int] = []

    @property
    def tried(self) -> int:
        """Sets that were tried so far."""
        return len(self._known)

    def run(self, begin: Iterable[Units]) -> FoundSet | None:
        """Searches from the sets ``begin``, in order; returns ``None`` where nothing was found."""
        if not self.num_units:
            return None
        starts = list(dict.fromkeys(tuple(sorted(set(units))) for units in begin if units))
        self._try(starts)
        self._considered = self._likely(starts)
        self._try([(unit,) for unit in self._considered])
        best = self._shrink_all()
        if best is None or len(best) > 2:
            self._grow([()], len(best) - 1 if best else self.num_units)
            best = self._shrink_all()
        if best is None:
            self._grow(sorted(starts, key=self._order)[:_BEAM], self.num_units)
            best = self._shrink_all()
        if best is None:
            self._try([tuple(range(self.num_units))])
            best = self._shrink_all()
        smaller, complete = self._smaller_than(len(best) if best else self.num_units + 1)
        best = smaller or best
        if best is None:
            return None
        same = sorted((u for u, value in self._known.items() if value > 0 and len(u) == len(best)), key=self._order)
        return FoundSet(same[0], tuple(same[1:]), complete, self.tried)

    def _likely(self, starts: Sequence[Units]) -> list[int]:
        """Picks the units that growth considers: all where they are few, else those most often in ``starts``."""
        if self.num_units <= _CONSIDERED:
            return list(range(self.num_units))
        often = Counter(unit for units in starts for unit in units)
        return sorted(sorted(range(self.num_units), key=lambda unit: (-often[unit], unit))[:_CONSIDERED])

    def _order(self, units: Units) -> tuple[bool, bool, float, Units]:
        """Sorts sets: connected ones first, then what goes farthest."""
        value = self._known[units]
        return value <= 0, not self._hangs(units), -value, units

    def _hangs(self, units: Units) -> bool:
        if units not in self._joined:
            self._joined[units] = self._connected(units)
        return self._joined[units]

    def _try(self, sets: Iterable[Units]) -> list[Units]:
        """Measures sets that are not known yet; returns all of them."""
        wanted = list(dict.fromkeys(sets))
        new = [units for units in wanted if units not in self._known]
        for begin in range(0, len(new), _AT_ONCE):
            part = new[begin : begin + _AT_ONCE]
            self._known.update(zip(part, self._measure(part), strict=True))
        return wanted

    def _shrink_all(self) -> Units | None:
        """Shrinks the best sets that are known; returns the smallest of what is left."""
        found = sorted((u for u, value in self._known.items() if value > 0), key=lambda u: (len(u), *self._order(u)))
        ends = [self._shrink(units) for units in found[:_SHRUNK]]
        return min(ends, key=lambda u: (len(u), *self._order(u)), default=None)

    def _shrink(self, units: Units) -> Units:
        """Leaves units out one by one, of large sets many at a time, as long as the change stays."""
        while len(units) > _LARGE:
            step = len(units) // 8
            less = self._try(units[:i] + units[i + step :] for i in range(0, len(units), step))
            still = [smaller for smaller in less if self._known[smaller] > 0]
            if not still:
                break
            units = min(still, key=self._order)
        while len(units) > 1:
            less = self._try(units[:i] + units[i + 1 :] for i in range(len(units)))
            still = [smaller for smaller in less if self._known[smaller] > 0]
            if not still:
                break
            units = min(still, key=self._order)
        return units

    def _grow(self, states: Sequence[Units], largest: int) -> None:
        """Adds the unit that goes farthest, to a few sets at a time, until one of them brings about the change."""
        beam, spent = list(states), self.tried
        while beam and self.tried - spent < self.limit and len(beam[0]) < largest:
            larger = {tuple(sorted((*u, unit))) for u in beam for unit in self._considered if unit not in u}
            self._try(sorted(larger))
            beam = sorted(larger, key=lambda u: (-self._known[u], u))[:_BEAM]
            if beam and self._known[beam[0]] > 0:
                return

    def _smaller_than(self, size: int) -> tuple[Units | None, bool]:
        """Tries every set below a size, the smallest first, as far as allowed; says whether all of them were tried."""
        left = self.exhaustive
        for count in range(1, size):
            if any(len(u) == count and value > 0 for u, value in self._known.items()):
                break
            new = comb(self.num_units, count) - sum(len(u) == count for u in self._known)
            if new > left:
                return None, False
            left -= new
            for part in _batches(combinations(range(self.num_units), count)):
                self._try(part)
        found = [u for u, value in self._known.items() if value > 0 and len(u) < size]
        return min(found, key=lambda u: (len(u), *self._order(u)), default=None), True


def _batches(sets: Iterator[Units]) -> Iterator[list[Units]]:
    while part := list(islice(sets, _AT_ONCE)):
        yield part
