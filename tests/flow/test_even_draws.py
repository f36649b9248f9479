"""Numbers that share actions out: one in each piece of the interval, uniform for each rollout, the same in NumPy."""

import numpy as np
import pytest
import torch
from scipy import stats

from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.even_draws import even_draws, even_numbers
from gflowexplainer.flow.sampling import follow_policy, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.estimates import estimate_from_policy
from gflowexplainer.ops.numpy_segments import grouped
from gflowexplainer.testing import house, random_graph


def drawn(at, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(len(at), dtype=torch.double, generator=generator).clamp(min=1e-12)


def test_the_numbers_of_a_state_are_equally_far_apart():
    at = torch.tensor([2, 0, 0, 1, 0, 2, 0])
    number = even_draws(at, drawn(at), 3)
    for state, count in enumerate([4, 1, 2]):
        here = number[at == state].sort().values
        torch.testing.assert_close(here.diff(), torch.full((count - 1,), 1 / count, dtype=torch.double))
        assert len(here) == count


@pytest.mark.parametrize("at", [[0], [0] * 64, [0, 1, 2], [3, 1, 1, 0, 2, 3, 3, 1]])
def test_numpy_gives_the_same_bits(at):
    at = torch.tensor(at)
    draw = drawn(at, 7)
    states = int(at.max()) + 1
    numbers = even_numbers(grouped(at.numpy()), draw.numpy())
    assert np.array_equal(even_draws(at, draw, states).numpy(), numbers)


def test_the_number_of_any_one_rollout_is_uniform():
    at = torch.tensor([0, 0, 0, 1, 1])
    numbers = torch.stack([even_draws(at, drawn(at, seed), 2) for seed in range(400)])
    for column in numbers.t():
        assert stats.kstest(column.numpy(), "uniform").pvalue > 1e-3


def test_no_number_reaches_one():
    at = torch.zeros(64, dtype=torch.long)
    draw = torch.full((64,), 1 - 2.0**-53, dtype=torch.double)
    assert 0 <= even_draws(at, draw, 1).min() <= even_draws(at, draw, 1).max() < 1
    assert even_numbers(grouped(at.numpy()), draw.numpy()).min() >= 0


def test_probabilities_of_nodes_scatter_less_and_about_the_same_mean():
    instances = Instances.of_graphs([house(), random_graph(14, 0.25, 1)])
    torch.manual_seed(3)
    policy = AdditivePolicy(3, 7, hidden=16).double()
    several = torch.arange(2).repeat_interleave(32)
    start = instances.ptr[:-1][several]
    encoding = policy.encode(instances, instances.x.double(), several)

    def estimates(evenly):
        choose = follow_policy(policy, encoding, evenly=evenly)
        found = [
            estimate_from_policy(
                roll_out(instances, several, start, 5, choose, rollout_keys(instances, several, draw), cuts=False)
            ).node
            for draw in range(30)
        ]
        return torch.stack(found)

    one_by_one, evenly = estimates(False), estimates(True)
    torch.testing.assert_close(evenly.mean(dim=0), one_by_one.mean(dim=0), rtol=0, atol=0.03)
    assert evenly.var(dim=0).sum() < 0.8 * one_by_one.var(dim=0).sum()
