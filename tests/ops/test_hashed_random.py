"""Hashed random numbers: distribution against scipy, independence, and values that must never change."""

import pytest
import torch
from scipy import stats

from gflowexplainer.ops.hashed_random import combine, mix, uniform

DRAWS = 100_000
# SplitMix64 started at state 0, as published by Vigna: the first three outputs.
SPLITMIX = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)
GOLDEN = 0x9E3779B97F4A7C15


def signed(value: int) -> int:
    value %= 1 << 64
    return value - (1 << 64) if value >= 1 << 63 else value


def test_mix_is_splitmix64() -> None:
    states = torch.tensor([signed(i * GOLDEN) for i in range(3)])
    assert mix(states).tolist() == [signed(value) for value in SPLITMIX]


def test_values_stay_the_same_for_ever() -> None:
    assert combine(0).item() == signed(SPLITMIX[0])
    assert combine(1, 2, 3).item() == 7702586659592502839
    number = torch.tensor([0, 1])
    assert uniform(7, number).tolist() == pytest.approx([0.7215081806049702, 0.15589407130731636], rel=1e-15)


@pytest.mark.parametrize("varied", [0, 1, 2])
def test_uniform_is_uniform_whichever_part_counts(varied: int) -> None:
    parts: list[torch.Tensor | int] = [3, 5, 8]
    parts[varied] = torch.arange(DRAWS)
    draws = uniform(*parts)
    assert draws.dtype == torch.double
    assert 0 < draws.min() < draws.max() < 1
    assert draws.mean().item() == pytest.approx(1 / 2, abs=0.004)
    assert draws.var().item() == pytest.approx(1 / 12, abs=0.001)
    assert stats.kstest(draws.numpy(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("lag", [1, 2, 7])
@pytest.mark.parametrize("neighbor", ["key", "seed"])
def test_neighbouring_keys_are_not_correlated(lag: int, neighbor: str) -> None:
    number = torch.arange(DRAWS)
    first = uniform(0, number)
    second = uniform(0, number + lag) if neighbor == "key" else uniform(lag, number)
    correlation = stats.pearsonr(first.numpy(), second.numpy()).statistic
    assert abs(correlation) < 4 / DRAWS**0.5


@pytest.mark.parametrize("bit", [0, 1, 12, 31, 62])
def test_one_flipped_bit_flips_half_of_the_bits(bit: int) -> None:
    key = torch.arange(2000)
    changed = mix(key) ^ mix(key ^ (1 << bit))
    ones = sum(((changed >> i) & 1).double().mean().item() for i in range(64))
    assert ones == pytest.approx(32, abs=0.5)


def test_no_batch_and_no_order_changes_a_draw() -> None:
    number = torch.arange(50)
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    whole = uniform(4, number, 9)
    assert torch.equal(uniform(4, number[order], 9), whole[order])
    assert torch.equal(torch.stack([uniform(4, i, 9) for i in number]), whole)
    assert torch.equal(uniform(4, number[:, None], torch.tensor([8, 9]))[:, 1], whole)


def test_order_and_number_of_parts_matter() -> None:
    keys = [combine(*parts).item() for parts in [(1, 2), (2, 1), (1,), (1, 2, 0), (0, 1, 2), (0, 0), (0,)]]
    assert len(set(keys)) == len(keys)


def test_keys_of_a_grid_do_not_collide() -> None:
    keys = combine(torch.arange(300)[:, None], torch.arange(300)).flatten()
    assert torch.unique(keys).numel() == keys.numel()


def test_global_random_state_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    uniform(0, torch.arange(5))
    assert torch.equal(torch.random.get_rng_state(), before)
