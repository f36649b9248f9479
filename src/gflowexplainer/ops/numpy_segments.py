"""Segments and groups in NumPy, for few numbers on a CPU: torch takes longer to begin than these take altogether."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_ONE = np.ones((), dtype=np.int64)
"""NumPy takes an array without axes sooner than a number."""
_FEW = 256
"""Keys that are looked up one by one sooner than counted through."""
_CLOSE = 16
"""Keys lie close where there is one for each so many numbers."""


_COUNTED = np.arange(1 << 12)
_COUNTED.flags.writeable = False


def counted(count: int) -> Array:
    """Returns the numbers from 0 to below ``count``; nobody may write into what is returned."""
    return _COUNTED[:count] if count <= _COUNTED.size else np.arange(count)


def flat_ranges(starts: Array, counts: Array) -> tuple[Array, Array]:
    """Does what :func:`~gflowexplainer.ops.segments.ranges` does: segment of every element, and the element itself."""
    owner = counted(counts.size).repeat(counts)
    return owner, counted(owner.size) + (starts - (counts.cumsum() - counts))[owner]


def which_of(keys: Array) -> tuple[Array, Array]:
    """Lists the different keys of ``[N]``, ascending, and which of them each key is, shape ``[N]``.

    Keys that lie close are ticked off, not sorted.
    """
    if keys.size == 0:
        return keys, keys
    least = int(keys.min())
    span = int(keys.max()) - least + 1
    if span > _CLOSE * keys.size:
        return np.unique(keys, return_inverse=True)
    there = np.zeros(span, dtype=bool)
    there[keys - least] = True
    return there.nonzero()[0] + least, (there.cumsum() - 1)[keys - least]


class Groups(NamedTuple):
    """Which of ``N`` keys are equal: ``G`` groups, ascending.

    Attributes:
        keys: The different keys, shape ``[G]``.
        order: The order that sorts the keys, stable, shape ``[N]``.
        ptr: Where each group begins in that order, shape ``[G + 1]``.
        group: Group of each key, shape ``[N]``.
    """

    keys: Array
    order: Array
    ptr: Array
    group: Array


def grouped(keys: Array) -> Groups:
    """Finds out which keys of ``[N]`` are equal."""
    order = keys.argsort(kind="stable")
    ordered = keys[order]
    # Something new begins behind the last one too.
    new = np.ones(keys.size + 1, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:-1])
    ptr = new.nonzero()[0] if keys.size else np.zeros(1, dtype=np.int64)
    different = ordered[ptr[:-1]]
    if keys.size <= _FEW:
        return Groups(different, order, ptr, different.searchsorted(keys))
    group = np.empty(keys.size, dtype=np.int64)
    group[order] = new[:-1].cumsum() - _ONE
    return Groups(different, order, ptr, group)


def first_places(keys: Array) -> tuple[Array, Array, Array]:
    """Does what :func:`~gflowexplainer.ops.sorting.first_of_each` does: keys, first places, and group of each key."""
    different, order, ptr, group = grouped(keys)
    return different, order[ptr[:-1]], group


def found_in(haystack: Array, needles: Array, bound: int | None = None) -> tuple[Array, Array]:
    """Does what :func:`~gflowexplainer.ops.sorting.find_sorted` does: positions, and whether each needle is there.

    Where all are known to be in ``[0, bound)`` and needles lie close, they are looked up in a table, not searched for.
    """
    if haystack.size == 0:
        return np.zeros(needles.shape, dtype=np.int64), np.zeros(needles.shape, dtype=bool)
    if bound is not None and bound <= needles.size:
        place = np.empty(bound, dtype=np.int64)
        place.fill(-1)
        place[haystack] = counted(haystack.size)
        position = place[needles]
        return position, position >= 0
    position = np.minimum(haystack.searchsorted(needles), haystack.size - 1)
    return position, haystack.take(position) == needles


def sorted_unique(keys: Array, bound: int | None = None) -> Array:
    """Lists the different keys of ``[N]``, ascending.

    Where all of them are known to be in ``[0, bound)`` and lie close, they are ticked off, not sorted.
    """
    if bound is not None and bound <= _CLOSE * keys.size:
        there = np.zeros(bound, dtype=bool)
        there[keys] = True
        return there.nonzero()[0]
    ordered = np.sort(keys)
    new = np.empty(keys.size, dtype=bool)
    new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def order_of_different(keys: Array, bound: int) -> Array:
    """Returns the order ``[N]`` that sorts keys, all in ``[0, bound)``, of which no two are equal."""
    if bound > _CLOSE * keys.size:
        return keys.argsort()
    place = np.empty(bound, dtype=np.int64)
    place.fill(-1)
    place[keys] = counted(keys.size)
    return place[place >= 0]


def boundaries(counts: Array) -> Array:
    """Turns segment lengths ``[S]`` into segment boundaries ``[S + 1]`` that start at 0."""
    ptr = np.zeros(counts.size + 1, dtype=np.int64)
    counts.cumsum(out=ptr[1:])
    return ptr


def numbered(keys: Array, bound: int) -> Array:
    """Numbers equal keys of ``[N]``, all in ``[0, bound)``, from 0 on, in the order in which they stand."""
    if bound == 1:
        return np.arange(keys.size)
    order = keys.argsort(kind="stable")
    counts = np.bincount(keys, minlength=bound)
    number = np.empty(keys.size, dtype=np.int64)
    number[order] = np.arange(keys.size) - (counts.cumsum() - counts).take(keys.take(order))
    return number
