import math
from collections import Counter

import pytest
import torch

from gflowexplainer.choices import Measure, ParentRule
from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.exact import enumerate_subgraphs, exact_marginals
from gflowexplainer.flow.measure import log_growth
from gflowexplainer.flow.network import FlowNetwork, NetworkInputs
from gflowexplainer.flow.policy import log_outflow
from gflowexplainer.flow.sampling import follow_policy, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, marginals
from gflowexplainer.inference.estimates import (
    disagreement,
    estimate_from_policy,
    importance_weights,
    reward_weights,
    shares,
)
from gflowexplainer.settings import Settings
from gflowexplainer.testing import cycle, house, path, random_graph


def frequencies(instances, samples, log_weight=None):
    """Probability of each node and neighbour entry by the share of the samples that hold them."""
    return marginals(instances, samples, shares(instances, samples, log_weight))


def test_weights_are_normalised_within_each_instance():
    instances = Instances.of_graphs([house(), house()])
    samples = Subgraphs(torch.tensor([0, 0, 1]), torch.tensor([[0, 1], [0, 3], [5, 6]]))
    log_weight = torch.tensor([3.0, 1.0, 1e-30]).log()
    node, _ = frequencies(instances, samples, log_weight)
    assert node[:5].tolist() == pytest.approx([1, 0.75, 0, 0.25, 0])
    assert node[5:].tolist() == pytest.approx([1, 1, 0, 0, 0])
    assert shares(instances, samples).tolist() == [0.5, 0.5, 1]


@pytest.mark.parametrize("rooted", [True, False])
@pytest.mark.parametrize("measure", Measure.names())
def test_weighted_samples_of_any_policy_tend_to_the_target(rooted, measure):
    instances = Instances.of_graphs([house(), random_graph(7, 0.2, 1)])
    start = instances.ptr[:-1] if rooted else None
    enumeration = enumerate_subgraphs(instances, torch.arange(2), start, 4)
    value = torch.randn(instances.num_nodes, generator=torch.Generator().manual_seed(2))

    def reward(subgraphs):
        return torch.where(subgraphs.filled, value[subgraphs.members.clamp(min=0)], 0).sum(dim=1)

    log_weight = reward(enumeration.subgraphs).double()
    if measure == "growth":
        log_weight += log_growth(enumeration.states, enumeration.child, enumeration.level_ptr)
    node, edge = exact_marginals(enumeration, enumeration.normalize(log_weight))
    torch.manual_seed(0)
    policy = AdditivePolicy(3, 4)
    encoding = policy.encode(instances, instances.x)
    several = torch.arange(2).repeat_interleave(20_000)
    starts = None if start is None else start[several]
    rollouts = roll_out(instances, several, starts, 4, follow_policy(policy, encoding))
    weight = importance_weights(rollouts, reward(rollouts.subgraphs), measure=measure)
    weighed = frequencies(instances, rollouts.subgraphs, weight)
    torch.testing.assert_close(weighed[0], node, atol=0.03, rtol=0)
    torch.testing.assert_close(weighed[1], edge, atol=0.03, rtol=0)
    # Counting alone gives the policy's answer, which is another one.
    assert (frequencies(instances, rollouts.subgraphs)[0] - node).abs().max() > 0.05


def test_the_policys_answer_counts_subgraphs_and_nodes_alike():
    graph = random_graph(12, 0.2, seed=1)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 5], 2)
    settings = Settings(max_nodes=4)
    inputs = NetworkInputs.of(instances, instances.x, settings, 2)
    network = FlowNetwork(settings, inputs)
    rollouts = network.sample(inputs, torch.arange(2).repeat_interleave(32), 7)
    reading = estimate_from_policy(rollouts)
    counted = Counter(
        (i, *sorted(row))
        for i, row in zip(rollouts.subgraphs.instance.tolist(), rollouts.subgraphs.members.tolist(), strict=True)
    )
    columns = reading.subgraphs.instance, reading.subgraphs.members, reading.probability
    listed = zip(*(column.tolist() for column in columns), strict=True)
    assert {(i, *sorted(row)): share for i, row, share in listed} == {k: n / 32 for k, n in counted.items()}
    node, edge = frequencies(instances, rollouts.subgraphs)
    torch.testing.assert_close(reading.node, node)
    torch.testing.assert_close(reading.neighbor, edge)


class SumOfMembers:
    """Rewards a subgraph by the sum of its node positions, halved where it could grow."""

    def log_reward(self, subgraphs, can_grow):
        total = torch.where(subgraphs.filled, subgraphs.members, 0).sum(dim=1).double()
        return torch.where(can_grow, total / 2, total)


@pytest.mark.parametrize("rule", ParentRule.names())
def test_the_weights_of_a_trained_network_follow_its_parent_rule(rule):
    """Reward over probability of the steps, and for each step one over the parents of the state that it leads to."""
    instances = Instances.of_graphs([cycle(4), path(4)])
    settings = Settings(max_nodes=3, measure="uniform", parents=rule)
    inputs = NetworkInputs.of(instances, instances.x, settings, 2)
    torch.manual_seed(0)
    rollouts = FlowNetwork(settings, inputs).sample(inputs, torch.arange(2).repeat_interleave(40), 3)
    states, (action, stop) = rollouts.states, rollouts.flows
    out = log_outflow(states, action, stop)
    parents = states.parents(rule).sum(dim=1)
    wanted = [0.0] * 80
    for visit, (at, number) in enumerate(zip(rollouts.state.tolist(), rollouts.rollout.tolist(), strict=True)):
        following = int(rollouts.successor[visit])
        if following < 0:
            reward = SumOfMembers().log_reward(states.subgraphs[[at]], states.can_grow[[at]])
            wanted[number] += float(reward) - float(stop[at] - out[at])
        else:
            wanted[number] -= float(action[rollouts.chosen[visit]] - out[at])
            wanted[number] -= math.log(int(parents[rollouts.state[following]]))
    assert reward_weights(rollouts, SumOfMembers(), settings).tolist() == pytest.approx(wanted, abs=1e-5)
    if rule != "sequence":
        assert int(parents.max()) > 1  # so that the rule is one that can be told from another


def test_an_instance_that_is_there_twice_is_read_twice():
    graph = random_graph(9, 0.25, seed=3)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [4, 4], 2)
    torch.manual_seed(0)
    policy = AdditivePolicy(3, 4)
    several = torch.arange(2).repeat_interleave(16)
    encoding = policy.encode(instances, instances.x)
    rollouts = roll_out(instances, several, instances.center[several], 4, follow_policy(policy, encoding))
    assert torch.equal(rollouts.subgraphs.instance, several)
    first, second = estimate_from_policy(rollouts).node.chunk(2)
    torch.testing.assert_close(first, second)
    assert float(first.max()) == pytest.approx(1)


def test_disagreement_is_what_counting_and_weighing_differ_by():
    instances = Instances.of_graphs([cycle(4), path(4)])
    settings = Settings(max_nodes=3, measure="uniform")
    inputs = NetworkInputs.of(instances, instances.x, settings, 2)
    torch.manual_seed(0)
    rollouts = FlowNetwork(settings, inputs).sample(inputs, torch.arange(2).repeat_interleave(40), 3)
    weight = reward_weights(rollouts, SumOfMembers(), settings)
    counted, weighed = Counter(), Counter()
    found = zip(rollouts.subgraphs.instance.tolist(), rollouts.subgraphs.members.tolist(), strict=True)
    for number, (i, row) in enumerate(found):
        mine = rollouts.subgraphs.instance == i
        counted[(i, *sorted(row))] += 1 / 40
        weighed[(i, *sorted(row))] += float(weight[number].exp() / weight[mine].exp().sum())
    wanted = [sum(abs(counted[k] - weighed[k]) for k in counted if k[0] == i) / 2 for i in range(2)]
    assert disagreement(rollouts, SumOfMembers(), settings).tolist() == pytest.approx(wanted, abs=1e-6)
    assert min(wanted) > 0
