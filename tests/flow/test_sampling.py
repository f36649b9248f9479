import pytest
import torch
from scipy import stats

from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.exact import enumerate_subgraphs, terminal_distribution, total_variation
from gflowexplainer.flow.sampling import (
    STOP,
    even_draws,
    follow_greedily,
    follow_policy,
    grow_at_random,
    grow_by,
    grow_uniformly,
    roll_out,
    rollout_keys,
)
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import subgraph_keys
from gflowexplainer.inference.estimates import estimate_from_policy
from gflowexplainer.testing import house, random_graph


@pytest.fixture
def policy():
    torch.manual_seed(1)
    return AdditivePolicy(3, 4)


def frequencies(enumeration, instances, samples):
    keys = subgraph_keys(instances, enumeration.subgraphs)
    order = keys.argsort()
    found = order[torch.searchsorted(keys[order], subgraph_keys(instances, samples))]
    counts = torch.bincount(found, minlength=len(enumeration.states)).double()
    return (counts / torch.bincount(samples.instance)[enumeration.root]).log()


@pytest.mark.parametrize("rooted", [True, False])
def test_samples_follow_the_exact_terminal_distribution(policy, rooted):
    instances = Instances.of_graphs([house(), random_graph(6, 0.3, 1)])
    start = instances.ptr[:-1] if rooted else None
    enumeration = enumerate_subgraphs(instances, torch.arange(2), start, 4)
    encoding = policy.encode(instances, instances.x)
    exact = terminal_distribution(enumeration, policy, encoding)
    several = torch.arange(2).repeat_interleave(20_000)
    starts = None if start is None else start[several]
    samples = roll_out(instances, several, starts, 4, follow_policy(policy, encoding)).subgraphs
    distance = total_variation(enumeration, frequencies(enumeration, instances, samples), exact)
    # The expected distance of 20,000 fair draws over S outcomes is below sqrt(S / (2 pi 20,000)).
    assert float(distance.max()) < 0.03


@pytest.mark.parametrize("ordered", [False, True])
def test_the_record_of_rollouts_is_consistent(policy, ordered):
    instances = Instances.of_graphs([random_graph(10, 0.3, seed) for seed in range(5)])
    several = torch.arange(5).repeat_interleave(6)
    encoding = policy.encode(instances, instances.x)
    start = instances.ptr[:-1][several]
    r = roll_out(instances, several, start, 4, follow_policy(policy, encoding), ordered=ordered)
    goes_on = torch.nonzero(r.chosen != STOP).flatten()
    assert torch.equal(r.successor >= 0, r.chosen != STOP)
    assert torch.equal(r.rollout[r.successor[goes_on]], r.rollout[goes_on])
    # The chosen entry belongs to its state, and the successor holds it beside all that was there.
    assert torch.equal(r.states.frontier_state[r.chosen[goes_on]], r.state[goes_on])
    before, after = r.state[goes_on], r.state[r.successor[goes_on]]
    for one, other, node in zip(before, after, r.states.frontier[r.chosen[goes_on]].tolist(), strict=True):
        assert {*r.states.members[one].tolist(), node} - {-1} == {*r.states.members[other].tolist()} - {-1}
        if ordered:
            assert r.states.members[other].tolist()[int(r.states.size[one])] == node
    assert torch.equal(r.states.instance[r.state[r.last]], several)
    assert (r.successor[r.last] == -1).all()
    # Each state is held once, and with it what the policy said of it.
    ways = [tuple(row) if ordered else frozenset(row) for row in r.states.members.tolist()]
    assert len(set(ways)) == len(r.states) < r.rollout.numel()
    action, stop = policy.log_flows(encoding, r.states)
    torch.testing.assert_close(r.flows, (action.detach(), stop.detach()))


def test_same_seed_same_answer_in_any_batch(policy):
    graphs = [random_graph(10, 0.3, seed) for seed in range(4)]
    instances = Instances.of_graphs(graphs)
    encoding = policy.encode(instances, instances.x)
    several = torch.arange(4).repeat_interleave(5)
    keys = rollout_keys(instances, several, 7, 3)
    start = instances.ptr[:-1]
    together = roll_out(instances, several, start[several], 4, follow_policy(policy, encoding), keys).subgraphs
    # Another order, instances apart, and alone.
    mixed = torch.arange(4).repeat(5)
    keys = rollout_keys(instances, mixed, 7, 3)
    apart = roll_out(instances, mixed, start[mixed], 4, follow_policy(policy, encoding), keys).subgraphs
    third = Instances.of_graphs(graphs[2:3], first=2)
    keys = rollout_keys(third, torch.zeros(5, dtype=torch.long), 7, 3)
    choose = follow_policy(policy, policy.encode(third, third.x))
    alone = roll_out(third, torch.zeros(5, dtype=torch.long), torch.zeros(5, dtype=torch.long), 4, choose, keys)
    for instance in range(4):
        mine = torch.nonzero(together.instance == instance).flatten()
        theirs = torch.nonzero(apart.instance == instance).flatten()
        assert torch.equal(together.members[mine], apart.members[theirs])
    mine = together.members[together.instance == 2]
    assert torch.equal(torch.where(mine < 0, -1, mine - instances.ptr[2]), alone.subgraphs.members)
    other = rollout_keys(instances, several, 8, 3)
    changed = roll_out(instances, several, start[several], 4, follow_policy(policy, encoding), other).subgraphs
    assert not torch.equal(changed.members, together.members)


def test_rollouts_leave_the_global_random_state_alone(policy):
    instances = Instances.of_graphs([house()])
    before = torch.get_rng_state()
    encoding = policy.encode(instances, instances.x)
    roll_out(instances, torch.tensor([0]), torch.tensor([0]), 4, follow_policy(policy, encoding, epsilon=0.5))
    assert torch.equal(before, torch.get_rng_state())


def test_temperature_towards_zero_is_greedy(policy):
    instances = Instances.of_graphs([random_graph(10, 0.3, seed) for seed in range(6)])
    encoding = policy.encode(instances, instances.x)
    every, start = torch.arange(6), instances.ptr[:-1]
    cold = roll_out(instances, every, start, 4, follow_policy(policy, encoding, temperature=1e-9)).subgraphs
    greedy = roll_out(instances, every, start, 4, follow_greedily(policy, encoding)).subgraphs
    assert torch.equal(cold.members, greedy.members)


def test_epsilon_one_is_uniform_over_all_actions(policy):
    instances = Instances.of_graphs([house()])
    encoding = policy.encode(instances, instances.x)
    several = torch.zeros(6_000, dtype=torch.long)
    start = torch.zeros(6_000, dtype=torch.long)
    r = roll_out(instances, several, start, 4, follow_policy(policy, encoding, epsilon=1.0))
    first = r.chosen[:6_000]
    assert len(r.states) < 100
    # Node 0 of the house has three neighbours: three actions and stopping.
    added = torch.where(first == STOP, STOP, r.states.frontier[first.clamp(min=0)])
    share = torch.stack([(added == choice).float().mean() for choice in (STOP, 1, 3, 4)])
    assert torch.allclose(share, torch.full((4,), 0.25), atol=0.02)


def test_uniform_growth_goes_to_the_bound_or_the_end():
    graphs = [random_graph(10, 0.3, seed) for seed in range(4)] + [house()]
    instances = Instances.of_graphs(graphs)
    grown = roll_out(instances, torch.arange(5), instances.ptr[:-1], 8, grow_uniformly).subgraphs
    assert grown.size.tolist() == [8, 8, 8, 8, 5]


def test_growing_by_score_takes_the_best_neighbour_each_time():
    instances = Instances.of_graphs([house()])
    # From 0 the neighbours are 1, 3 and 4; node 2, the best of all, can only be reached through 1 or 3.
    score = torch.tensor([0.0, 0.2, 0.9, 0.3, 0.1])
    grown = roll_out(instances, torch.tensor([0]), torch.tensor([0]), 4, grow_by(score)).subgraphs
    assert grown.members.tolist() == [[0, 3, 2, 1]]
    anywhere = roll_out(instances, torch.tensor([0]), None, 2, grow_by(score)).subgraphs
    assert anywhere.members.tolist() == [[2, 3]]


def test_where_stopping_is_as_good_as_going_on_the_greedy_rule_stops():
    instances = Instances.of_graphs([house()])
    level = AdditivePolicy(3, 4).begin_level()  # all flows are equal
    choose = follow_greedily(level, level.encode(instances, instances.x))
    assert roll_out(instances, torch.tensor([0]), torch.tensor([2]), 4, choose).subgraphs.size.tolist() == [1]


@pytest.mark.parametrize("rooted", [True, False])
@pytest.mark.parametrize("max_nodes", [1, 2, 7])
def test_it_ends_where_rollouts_of_the_same_keys_end(rooted, max_nodes):
    # Of several components, with a node that has no neighbours.
    graphs = [random_graph(12, 0.1, seed) for seed in range(4)] + [house(), random_graph(1)]
    instances = Instances.of_graphs(graphs)
    every = torch.arange(len(graphs)).repeat_interleave(20)
    start = instances.ptr[every] if rooted else None
    keys = rollout_keys(instances, every, 3)
    ends = grow_at_random(instances, every, start, max_nodes, keys)
    rollouts = roll_out(instances, every, start, max_nodes, grow_uniformly, keys, ordered=True).subgraphs
    assert torch.equal(ends.instance, rollouts.instance)
    assert torch.equal(ends.members.sort(dim=1).values, rollouts.members.sort(dim=1).values)
    assert len(set(ends.size.tolist())) > (max_nodes > 1)


def test_every_neighbour_has_an_equal_chance():
    instances = Instances.of_graphs([house()])
    every = torch.zeros(6_000, dtype=torch.long)
    second = grow_at_random(instances, every, every, 2, rollout_keys(instances, every)).members[:, 1]
    # Node 0 of the house has three neighbours.
    share = torch.bincount(second, minlength=5) / 6_000
    assert torch.allclose(share, torch.tensor([0, 1, 0, 1, 1]) / 3, atol=0.02)


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


def test_the_number_of_any_one_rollout_is_uniform():
    at = torch.tensor([0, 0, 0, 1, 1])
    numbers = torch.stack([even_draws(at, drawn(at, seed), 2) for seed in range(400)])
    for column in numbers.t():
        assert stats.kstest(column.numpy(), "uniform").pvalue > 1e-3


def test_no_number_reaches_one():
    at = torch.zeros(64, dtype=torch.long)
    draw = torch.full((64,), 1 - 2.0**-53, dtype=torch.double)
    assert 0 <= even_draws(at, draw, 1).min() <= even_draws(at, draw, 1).max() < 1


def test_probabilities_of_nodes_scatter_less_and_about_the_same_mean():
    instances = Instances.of_graphs([house(), random_graph(14, 0.25, 1)])
    torch.manual_seed(3)
    policy = AdditivePolicy(3, 7, hidden=16).double()
    several = torch.arange(2).repeat_interleave(32)
    start = instances.ptr[:-1][several]
    encoding = policy.encode(instances, instances.x.double())

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
    torch.testing.assert_close(evenly.mean(dim=0), one_by_one.mean(dim=0), rtol=0, atol=0.05)
    assert evenly.var(dim=0).sum() < 0.8 * one_by_one.var(dim=0).sum()
