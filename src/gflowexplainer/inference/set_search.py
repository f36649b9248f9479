"""Searches small sets of units (nodes or edges) whose removal brings about a change: guided, then shrunk, then checked.

The search knows nothing of graphs: it is given units by number, sets to begin with, and a function that measures how
far removing a set goes. It is deterministic, and tries no more sets than it is allowed to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

Units = tuple[int, ...]
"""Ascending numbers of units."""
_BEAM = 2
_SHRUNK = 3
_BEGUN = 8
"""Sets of those given that are tried together at first; the others only where these bring about nothing."""
_LEVELS = 2
"""Growth spends what is left on at most so many sizes alike."""
_AT_ONCE = 512
_CONSIDERED = 128


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
        connected: Returns whether a set is connected; of equally large sets, these go first.
        limit: Sets that may be tried to find one that brings about the change.
        enough: Sets that may be tried, these included, to find a smaller one when one was found.
        exhaustive: Sets that may be tried, all of them included, to have tried every smaller one.
    """

    def __init__(
        self,
        num_units: int,
        measure: Callable[[Sequence[Units]], Sequence[float]],
        connected: Callable[[Units], bool],
        *,
        limit: int,
        enough: int,
        exhaustive: int,
    ) -> None:
        self.num_units, self.limit, self.enough, self.exhaustive = num_units, limit, enough, exhaustive
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
        self._considered = self._likely(starts)
        self._try([(unit,) for unit in self._considered])
        if not self._changing():
            # Sets of what goes farthest alone, the first of those given, and everything.
            self._try([*self._prefixes(), *starts[:_BEGUN], tuple(range(self.num_units))])
            best = self._shrink_all(1)
            if best is None or len(best) > 2:
                self._grow([(unit,) for unit in self._ranked()[:_BEAM]], len(best) - 1 if best else self.num_units)
                best = self._shrink_all(_SHRUNK)
            if best is None:
                self._try(starts)
                self._grow(sorted((u for u in starts if u in self._known), key=self._order)[:_BEAM], self.num_units)
                self._shrink_all(_SHRUNK)
        complete = self._try_smaller()
        self._connect()
        found = self._changing()
        if not found:
            return None
        size = min(map(len, found))
        same = sorted((units for units in found if len(units) == size), key=self._order)
        return FoundSet(same[0], tuple(same[1:]), complete, self.tried)

    def _likely(self, starts: Sequence[Units]) -> list[int]:
        """Picks the units that growth considers: all where they are few, else those most often in ``starts``."""
        if self.num_units <= _CONSIDERED:
            return list(range(self.num_units))
        often = Counter(unit for units in starts for unit in units)
        return sorted(sorted(range(self.num_units), key=lambda unit: (-often[unit], unit))[:_CONSIDERED])

    def _ranked(self) -> list[int]:
        """Lists the units that were tried alone, those that go farthest first."""
        return sorted((u for u in self._considered if (u,) in self._known), key=lambda u: (-self._known[(u,)], u))

    def _prefixes(self) -> list[Units]:
        """Makes sets of the 2, 3, 4, 6, 8, 12, ... units that go farthest alone."""
        ranked, sizes, size = self._ranked(), list[int](), 2
        while size < len(ranked):
            sizes += [size, size * 3 // 2]
            size *= 2
        return [tuple(sorted(ranked[:size])) for size in sizes if size < len(ranked)]

    def _order(self, units: Units) -> tuple[bool, bool, float, Units]:
        """Sorts sets: connected ones first, then what goes farthest."""
        value = self._known[units]
        return value <= 0, not self._hangs(units), -value, units

    def _hangs(self, units: Units) -> bool:
        if units not in self._joined:
            self._joined[units] = self._connected(units)
        return self._joined[units]

    def _changing(self) -> list[Units]:
        """Returns the sets known to bring about the change."""
        return [units for units, value in self._known.items() if value > 0]

    def _left(self) -> int:
        """Returns how many sets may still be tried."""
        return max((self.enough if self._changing() else self.limit) - self.tried, 0)

    def _try(self, sets: Iterable[Units], left: int | None = None) -> list[Units]:
        """Measures sets that are not known yet, as many as may be tried; returns those that are known now."""
        wanted = list(dict.fromkeys(sets))
        new = [units for units in wanted if units not in self._known][: self._left() if left is None else left]
        for begin in range(0, len(new), _AT_ONCE):
            part = new[begin : begin + _AT_ONCE]
            self._known.update(zip(part, self._measure(part), strict=True))
        return [units for units in wanted if units in self._known]

    def _shrink_all(self, number: int) -> Units | None:
        """Shrinks the best sets that are known; returns the smallest of what is left."""
        found = sorted(self._changing(), key=lambda u: (len(u), *self._order(u)))
        ends = [self._shrink(units) for units in found[:number]]
        return min(ends, key=lambda u: (len(u), *self._order(u)), default=None)

    def _shrink(self, units: Units) -> Units:
        """Leaves units out as long as the change stays: halves first, then smaller pieces, in the end single ones."""
        pieces = 2
        while len(units) > 1:
            # What goes least far alone is left out together.
            order = sorted(units, key=lambda u: (self._known.get((u,), float("-inf")), u))
            pieces = min(pieces, len(units))
            size = -(-len(units) // pieces)
            rest = {piece: _without(units, piece) for piece in map(frozenset, _parts(order, size))}
            self._try(rest.values())
            spare = [piece for piece, smaller in rest.items() if self._known.get(smaller, 0.0) > 0]
            if spare:
                units = self._without_many(units, sorted(spare, key=lambda piece: self._order(rest[piece])))
                pieces = max(pieces - 1, 2)
            elif pieces == len(units):
                break
            else:
                pieces *= 2
        return units

    def _without_many(self, units: Units, spare: Sequence[frozenset[int]]) -> Units:
        """Leaves out as many pieces as can go together, of those that can go alone; the best come first."""
        best, count = _without(units, spare[0]), 2
        while count <= len(spare):
            smaller = _without(units, frozenset[int]().union(*spare[:count]))
            if not smaller or not self._try([smaller]) or self._known[smaller] <= 0:
                break
            best, count = smaller, 2 * count
        return best

    def _grow(self, states: Sequence[Units], largest: int) -> None:
        """Adds the units that promise to go farthest, to a few sets at a time, until one brings about the change.

        To the best set every unit is added, to the others those first that went farthest with the sets before.
        """
        beam, ranked = list(states), self._ranked()
        # Most units do nothing alone: the one in the middle is what others are compared with.
        gain = {unit: self._known[(unit,)] - self._known[(ranked[len(ranked) // 2],)] for unit in ranked}
        while beam and self._left() and len(beam[0]) < largest:
            larger: dict[Units, tuple[Units, int]] = {}
            for state in beam:
                for unit in sorted(gain, key=lambda u: (-gain[u], u)):
                    if unit not in state:
                        larger.setdefault(tuple(sorted((*state, unit))), (state, unit))
            left = self.enough - self.tried if self.tried < self.enough else self._left()
            width = max(left // min(largest - len(beam[0]), _LEVELS), len(beam))
            promise = {new: self._known[state] + gain[unit] for new, (state, unit) in larger.items()}
            first = [new for new, (state, _) in larger.items() if state == beam[0]][:width]
            rest = sorted(larger, key=lambda u: (-promise[u], u))
            known = self._try(list(dict.fromkeys([*first, *rest]))[:width])
            for new in reversed(known):
                state, unit = larger[new]
                gain[unit] = self._known[new] - self._known[state]
            beam = sorted(known, key=lambda u: (-self._known[u], u))[:_BEAM]
            if beam and self._known[beam[0]] > 0:
                return

    def _connect(self) -> None:
        """Exchanges one unit of the best set for others with which it hangs together, where it does not."""
        best = min(self._changing(), key=lambda u: (len(u), *self._order(u)), default=())
        if len(best) < 2 or self._hangs(best):
            return
        ranked = {unit: place for place, unit in enumerate(self._ranked())}
        swapped = {
            tuple(sorted((*_without(best, frozenset([gone])), unit))): ranked[unit]
            for gone in best
            for unit in ranked
            if unit not in best
        }
        self._try(units for units in sorted(swapped, key=lambda u: (swapped[u], u)) if self._hangs(units))

    def _try_smaller(self) -> bool:
        """Tries every set below the smallest known one, as far as allowed; returns whether all of them were tried."""
        count = 1
        while count < min(map(len, self._changing()), default=self.num_units + 1):
            new = comb(self.num_units, count) - sum(len(units) == count for units in self._known)
            if new > max(self.exhaustive - self.tried, 0):
                return False
            for part in _batches(combinations(range(self.num_units), count)):
                self._try(part, left=len(part))
            count += 1
        return True


def _without(units: Units, gone: frozenset[int]) -> Units:
    return tuple(unit for unit in units if unit not in gone)


def _parts(order: Sequence[int], size: int) -> list[Sequence[int]]:
    return [order[begin : begin + size] for begin in range(0, len(order), size)]


def _batches(sets: Iterator[Units]) -> Iterator[list[Units]]:
    while part := list(islice(sets, _AT_ONCE)):
        yield part
