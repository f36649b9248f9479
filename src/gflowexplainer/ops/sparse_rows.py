"""Fields of an explanation that are known at a few rows of a large graph, and only written out when they are asked for.

A mask over a graph of ten million edges is a long row of zeros. Until someone looks at it, it is kept as the few values
that are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gflowexplainer.ops.segments import pointers


@dataclass(frozen=True)
class SparseRows:
    """A tensor ``[size, ...]`` that is ``fill`` everywhere but at some rows.

    Attributes:
        values: These rows, shape ``[k, ...]``.
        place: Where they are, shape ``[k]``.
        size: Number of all rows.
        fill: What is in the others.
    """

    values: Tensor
    place: Tensor
    size: int
    fill: float = 0.0

    def dense(self) -> Tensor:
        """Writes the tensor out."""
        whole = self.values.new_full((self.size, *self.values.shape[1:]), self.fill)
        whole[self.place] = self.values
        return whole

    def to(self, device: torch.device) -> SparseRows:
        """Moves it to a device."""
        if self.values.device == self.place.device == device:
            return self
        return replace(self, values=self.values.to(device), place=self.place.to(device))

    def row(self, place: int) -> Tensor:
        """Returns one row."""
        found = torch.nonzero(self.place == place).flatten()
        return self.values[found[-1]] if found.numel() else self.values.new_full(self.values.shape[1:], self.fill)


class RowSections:
    """Rows of tensors that consist of sections, such as the nodes of each type, sorted by section.

    Args:
        values: What is known at some rows of the tensors of several owners, by name, shape ``[k, ...]``.
        owner: Whose they are, shape ``[k]``.
        place: Where they are in the owner's tensor, shape ``[k]``.
        first: First row of each section of each owner, ascending.
    """

    def __init__(
        self, values: Mapping[str, Tensor], owner: Tensor, place: Tensor, first: Sequence[Sequence[int]]
    ) -> None:
        span = 1 + max(int(place.max()) if place.numel() else 0, *(max(rows, default=0) for rows in first))
        starts = torch.tensor([o * span + row for o, rows in enumerate(first) for row in rows], device=place.device)
        key = owner * span + place
        section = torch.bucketize(key, starts, right=True) - 1
        order = torch.argsort(section, stable=True)
        self._values = {name: value[order] for name, value in values.items()}
        self._place = (key - starts[section])[order]
        self._ptr = pointers(torch.bincount(section, minlength=len(starts))).tolist()
        self._begin = list(accumulate(map(len, first), initial=0))

    def rows(self, owner: int, section: int, size: int) -> dict[str, SparseRows]:
        """Returns one section of an owner's tensors, which has ``size`` rows."""
        number = self._begin[owner] + section
        here = slice(self._ptr[number], self._ptr[number + 1])
        return {name: SparseRows(value[here], self._place[here], size) for name, value in self._values.items()}


class Fields(dict[str, Any]):
    """A dictionary that writes :class:`SparseRows` out when they are looked at, and keeps what it wrote."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if isinstance(value, SparseRows):
            value = value.dense()
            self[name] = value
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """See :class:`dict`."""
        return self[name] if name in self else default  # noqa: SIM401

    def values(self) -> Any:
        """See :class:`dict`; writes everything out."""
        return {name: self[name] for name in self}.values()

    def items(self) -> Any:
        """See :class:`dict`; writes everything out."""
        return {name: self[name] for name in self}.items()

    def raw(self) -> dict[str, Any]:
        """Returns the fields as they are kept."""
        return dict(super().items())

    def __reduce__(self) -> tuple[Any, ...]:
        return Fields, (self.raw(),)


def pack_fields(fields: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, dict[str, Any]]]:
    """Takes the sparse ones among ``fields`` apart into tensors and plain values, for a file."""
    tensors: dict[str, Tensor] = {}
    plain = {}
    for name, value in fields.items():
        if isinstance(value, SparseRows):
            tensors |= {f"{name}/values": value.values.detach().clone(), f"{name}/place": value.place.clone()}
            plain[name] = {"size": value.size, "fill": str(value.fill)}  # JSON knows no NaN
    return tensors, plain


def unpack_fields(tensors: dict[str, Tensor], plain: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Puts what :func:`pack` took apart together again, beside the other ``tensors``."""
    rest: dict[str, Any] = dict(tensors)
    for name, value in plain.items():
        parts = rest.pop(f"{name}/values"), rest.pop(f"{name}/place")
        rest[name] = SparseRows(*parts, int(value["size"]), float(value["fill"]))
    return rest


class MatrixEntries(NamedTuple):
    """Entries of a matrix that is zero elsewhere.

    Attributes:
        row, column, value: Of each entry, all ``[k]``.
        size: Number of columns.
        in_order: Whether they are known to stand in order, by row and column, and none twice.
    """

    row: Tensor
    column: Tensor
    value: Tensor
    size: int
    in_order: bool
