"""Remembers values by 64-bit keys, for whole batches of keys at once."""

from collections.abc import Callable

import torch
from torch import Tensor

from gflowexplainer.ops.sorting import find_sorted, first_of_each


class KeyedCache:
    """A sorted table from int64 keys to floats.

    Args:
        capacity: Entries to keep at most; a table that would grow beyond it is emptied first, so what was
            found before an :meth:`add` need not be found after it.
    """

    def __init__(self, capacity: int = 4_000_000) -> None:
        self.capacity = capacity
        self._keys = torch.empty(0, dtype=torch.long)
        self._values = torch.empty(0)
        self._news: list[tuple[Tensor, Tensor]] | None = None

    def __len__(self) -> int:
        return self._keys.numel()

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Looks ``keys`` ``[Q]`` up: their values, meaningful only where found, and whether they were found."""
        if self._keys.device != keys.device:
            self._keys, self._values = self._keys.to(keys.device), self._values.to(keys.device)
        position, found = find_sorted(self._keys, keys)
        values = self._values[position] if len(self) else torch.zeros(keys.shape, device=keys.device)
        return values, found

    def add(self, keys: Tensor, values: Tensor) -> None:
        """Stores values of keys ``[Q]`` that are new and differ from one another."""
        if self._news is not None:
            self._news.append((keys, values))
        if len(self) + keys.numel() > self.capacity:
            self._keys, self._values = keys[:0], values[:0]
            keys, values = keys[: self.capacity], values[: self.capacity]
        # Both are merged by where each stands: the table is long, and sorting it anew would be slow.
        keys, order = keys.sort()
        place = torch.searchsorted(self._keys, keys) + torch.arange(keys.numel(), device=keys.device)
        old = torch.ones(len(self) + keys.numel(), dtype=torch.bool, device=keys.device)
        old[place] = False
        merged, known = keys.new_empty(old.numel()), self._values.to(values)
        merged[place], merged[old] = keys, self._keys
        self._keys, self._values = merged, known.new_empty(old.numel())
        self._values[place], self._values[old] = values[order], known

    def exchange(self, gather: Callable[[Tensor, Tensor], tuple[Tensor, ...]]) -> None:
        """Tells other tables what was added since the last exchange, and learns the same from them.

        Args:
            gather: Puts keys ``[Q]`` and values ``[Q]`` of all tables below one another.
        """
        news, device = self._news or [], self._keys.device
        keys = torch.cat([keys for keys, _ in news] or [torch.empty(0, dtype=torch.long, device=device)])
        values = torch.cat([values for _, values in news] or [torch.empty(0, device=device)])
        # All tables must agree on a type, also those that have nothing to tell.
        keys, values = gather(keys, values.double())
        keys, first, _ = first_of_each(keys)
        _, known = self.find(keys)
        missing = torch.nonzero(~known).flatten()
        self._news = None
        if missing.numel():
            self.add(keys[missing], values[first[missing]].to(self._values if len(self) else values))
        self._news = []

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Returns the contents under ``name``, for a checkpoint."""
        return {f"{name}_keys": self._keys, f"{name}_values": self._values}

    def load_tensors(self, name: str, tensors: dict[str, Tensor]) -> None:
        """Takes the contents that :meth:`tensors` gave."""
        self._keys, self._values = tensors[f"{name}_keys"], tensors[f"{name}_values"]
