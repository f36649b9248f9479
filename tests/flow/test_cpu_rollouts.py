"""Growth by NumPy beside growth by torch: the same random numbers must give the same subgraphs."""

import pytest
import torch

from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.cpu_policy import CpuEncoding
from gflowexplainer.flow.cpu_rollouts import CpuRollouts, grows_on_cpu
from gflowexplainer.flow.cpu_rows import is_square
from gflowexplainer.flow.paper_policy import PaperPolicy
from gflowexplainer.flow.sampling import follow_policy, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.settings import Settings
from gflowexplainer.testing import house, path, random_graph, star

GRAPHS = [house(), random_graph(14, 0.25, 1), star(6), path(1), path(3), random_graph(9, 0.0, 2)]


def a_policy(min_nodes=2, scale=1.0):
    torch.manual_seed(3)
    policy = AdditivePolicy(3, 7, hidden=16, min_nodes=min_nodes).double()
    with torch.no_grad():
        for parameter in policy.action_head.parameters():
            parameter.mul_(1 + scale)
    return policy


def both_ways(instances, policy, several, start, max_nodes, **how):
    encoding = policy.encode(instances, instances.x.double(), several)
    keys = rollout_keys(instances, several, 5, 11)
    with torch.no_grad():
        wanted = roll_out(
            instances, several, start, max_nodes, follow_policy(policy, encoding, **how), keys, cuts=False
        )
        growing = CpuRollouts(instances, policy, CpuEncoding.of(encoding), max_nodes, **how)
        found = growing.grow(several.numpy(), None if start is None else start.numpy(), keys.numpy())
        return wanted, found.rollouts()


def assert_same(one, other):
    for name in ("state", "rollout", "chosen", "successor", "last"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    for name in ("instance", "members", "size", "frontier_ptr", "frontier", "links"):
        assert torch.equal(getattr(one.states, name), getattr(other.states, name)), name
    for wanted, given in zip(one.flows, other.flows, strict=True):
        torch.testing.assert_close(given, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rooted", [True, False])
@pytest.mark.parametrize("how", [{}, {"epsilon": 0.4, "temperature": 2.0}, {"evenly": True}])
@pytest.mark.parametrize("max_nodes", [1, 4, 7])
def test_the_same_rollouts_as_by_torch(rooted, how, max_nodes):
    instances = Instances.of_graphs(GRAPHS)
    several = torch.arange(len(instances)).repeat_interleave(20)
    start = instances.ptr[:-1][several] if rooted else None
    assert_same(*both_ways(instances, a_policy(), several, start, max_nodes, **how))


@pytest.mark.parametrize("min_nodes", [1, 3])
def test_the_same_below_the_least_size_and_on_some_of_the_instances(min_nodes):
    instances = Instances.of_graphs(GRAPHS)
    several = torch.tensor([1, 1, 4]).repeat_interleave(30)
    assert_same(*both_ways(instances, a_policy(min_nodes), several, instances.ptr[:-1][several], 7))


@pytest.mark.parametrize("rooted", [True, False])
def test_square_and_flat_rows_give_the_same_rollouts(monkeypatch, rooted):
    # Of several components, so that some rollouts can grow no further.
    instances = Instances.of_graphs([random_graph(24, 0.05, 1)])
    several, policy, found = torch.zeros(40, dtype=torch.long), a_policy(), []
    for bound in (instances.num_nodes, instances.num_nodes - 1):
        monkeypatch.setattr("gflowexplainer.flow.cpu_rows._SQUARE", bound)
        assert is_square(instances) == (bound == 24)
        found.append(both_ways(instances, policy, several, several if rooted else None, 7))
    (wanted, square), (_, flat) = found
    assert_same(wanted, square)
    assert_same(square, flat)
    for one, other in zip(square.flows, flat.flows, strict=True):
        assert torch.equal(one, other)


def test_settled_weights_are_prepared_once_and_others_are_read_anew():
    instances, policy = Instances.of_graphs([house()]), a_policy()
    several = torch.zeros(20, dtype=torch.long)
    assert_same(*both_ways(instances, policy, several, several, 4))
    with torch.no_grad():
        policy.stop_head[1].weight.mul_(-1)
    assert_same(*both_ways(instances, policy, several, several, 4))
    policy.requires_grad_(False)
    for _ in range(2):
        assert_same(*both_ways(instances, policy, several, several, 4))


def test_an_instance_that_is_there_twice_has_states_of_its_own():
    data = random_graph(12, 0.3, 4)
    instances = Instances.around_nodes(data.x, data.edge_index, [3, 3], 2)
    several = torch.arange(2).repeat_interleave(20)
    assert_same(*both_ways(instances, a_policy(), several, instances.center[several], 5))


def test_large_batches_are_evaluated_in_parts(monkeypatch):
    instances = Instances.of_graphs(GRAPHS)
    several = torch.arange(len(instances)).repeat_interleave(20)
    monkeypatch.setattr("gflowexplainer.flow.cpu_policy._ENTRIES_AT_ONCE", 7)
    assert_same(*both_ways(instances, a_policy(), several, None, 6))


def test_what_it_cannot_grow_is_left_to_torch():
    instances = Instances.of_graphs([house()])
    assert grows_on_cpu(Settings(), a_policy(), instances)
    assert not grows_on_cpu(Settings(), PaperPolicy(3), instances)
    assert not grows_on_cpu(Settings(measure="uniform"), a_policy(), instances)
    assert not grows_on_cpu(Settings(measure="uniform", parents="sequence"), a_policy(), instances)
