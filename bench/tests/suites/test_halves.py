import torch

from gflowbench.suites.halves import SEEDS, half_of, nodes_of_seed


def test_halves_share_nothing() -> None:
    assert not set(SEEDS["development"]) & set(SEEDS["judging"])
    assert all(half_of(seed) == half for half, seeds in SEEDS.items() for seed in seeds)
    nodes = {half: torch.cat([nodes_of_seed(torch.arange(1000), s) for s in seeds]) for half, seeds in SEEDS.items()}
    assert len(nodes["development"]) == len(nodes["judging"]) == 500
    assert not set(nodes["development"].tolist()) & set(nodes["judging"].tolist())
