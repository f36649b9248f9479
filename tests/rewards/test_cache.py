"""The keyed table, held against a dictionary."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gflowexplainer.rewards.cache import KeyedCache

keys = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(keys, max_size=6), max_size=5), st.lists(keys, max_size=6))
def test_finds_what_a_dictionary_finds(rounds: list[list[int]], others: list[int]) -> None:
    cache, truth = KeyedCache(), {}
    for batch in rounds:
        new = sorted(set(batch) - truth.keys(), key=str)
        values = torch.arange(len(truth), len(truth) + len(new)).double()
        cache.add(torch.tensor(new, dtype=torch.long), values)
        truth |= dict(zip(new, values.tolist(), strict=True))
        asked = [*others, *truth]
        values, found = cache.find(torch.tensor(asked, dtype=torch.long))
        assert found.tolist() == [key in truth for key in asked]
        assert values[found].tolist() == [truth[key] for key in asked if key in truth]
    assert len(cache) == len(truth)


def test_empty_table_finds_nothing() -> None:
    values, found = KeyedCache().find(torch.tensor([1, 2]))
    assert values.shape == (2,)
    assert not found.any()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 6), st.lists(st.integers(1, 5), max_size=6))
def test_never_holds_more_than_its_capacity(capacity: int, sizes: list[int]) -> None:
    cache, first = KeyedCache(capacity), 0
    for size in sizes:
        before = len(cache)
        new = torch.arange(first, first + size)
        cache.add(new, new.double())
        first += size
        # Either everything fitted, or the old entries went and as many new ones as can be are in.
        assert len(cache) == (before + size if before + size <= capacity else min(size, capacity))
        values, found = cache.find(torch.arange(first))
        assert values[found].tolist() == torch.arange(first)[found].tolist()


def test_contents_survive_a_checkpoint() -> None:
    cache, again = KeyedCache(), KeyedCache()
    cache.add(torch.tensor([7, -3]), torch.tensor([0.5, 0.25]))
    tensors = cache.tensors("name")
    assert tensors.keys() == {"name_keys", "name_values"}
    again.load_tensors("name", tensors)
    values, found = again.find(torch.tensor([-3, 7, 8]))
    assert found.tolist() == [True, True, False]
    assert values[:2].tolist() == [0.25, 0.5]


def test_values_keep_their_precision() -> None:
    cache = KeyedCache()
    cache.add(torch.tensor([1]), torch.tensor([0.1], dtype=torch.double))
    assert cache.find(torch.tensor([1]))[0].item() == 0.1


def tell(tables: list[KeyedCache]) -> list[int]:
    """Lets tables exchange as processes do, where all tell before anyone learns; gives the keys that were told."""
    parts: list[tuple[torch.Tensor, ...]] = []

    def listen(*columns: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts.append(columns)
        return tuple(column[:0] for column in columns)

    def learn(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(map(torch.cat, zip(*parts, strict=True)))

    for gather in (listen, learn):
        for table in tables:
            table.exchange(gather)
    return torch.cat([keys for keys, _ in parts]).tolist()


def test_tables_tell_one_another_what_is_new_and_once() -> None:
    tables = [KeyedCache(), KeyedCache()]
    assert tell(tables) == []  # begins to keep account
    tables[0].add(torch.tensor([5, 1]), torch.tensor([0.5, 0.1]))
    tables[1].add(torch.tensor([7]), torch.tensor([0.7]))
    assert tell(tables) == [5, 1, 7]
    assert tell(tables) == []
    for table in tables:
        values, found = table.find(torch.tensor([1, 5, 7, 8]))
        assert found.tolist() == [True, True, True, False]
        assert torch.equal(values[:3], torch.tensor([0.1, 0.5, 0.7]))  # the same bits, in the type they had
    tables[1].add(torch.tensor([9]), torch.tensor([0.9]))
    assert tell(tables) == [9]
    assert len(tables[0]) == len(tables[1]) == 4
