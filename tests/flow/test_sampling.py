import networkx as nx
import pytest
import torch

from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.exact import enumerate_subgraphs, terminal_distribution, total_variation
from gflowexplainer.flow.sampling import (
    STOP,
    follow_greedily,
    follow_policy,
    grow_by,
    grow_inside,
    grow_uniformly,
    roll_out,
    rollout_keys,
)
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import subgraph_keys
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


def test_a_subgraph_is_rebuilt_in_connected_orders():
    instances = Instances.of_graphs([random_graph(12, 0.2, seed) for seed in range(6)])
    every, start = torch.arange(6), instances.ptr[:-1]
    goal = roll_out(instances, every, start, 5, grow_uniformly).subgraphs
    for draw in range(3):
        keys = rollout_keys(instances, every, draw)
        again = roll_out(instances, every, start, 5, grow_inside(goal), keys)
        assert torch.equal(subgraph_keys(instances, again.subgraphs), subgraph_keys(instances, goal))
    orders = [
        roll_out(instances, every, start, 5, grow_inside(goal), rollout_keys(instances, every, d)).subgraphs.members
        for d in range(5)
    ]
    assert any(not torch.equal(orders[0], other) for other in orders[1:])
    graph = nx.Graph(instances.edge_index.t().tolist())
    for row in again.subgraphs.members.tolist():
        assert all(nx.is_connected(graph.subgraph(row[: k + 1])) for k in range(5))


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
