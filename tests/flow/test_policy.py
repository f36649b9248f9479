import pytest
import torch

from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.exact import enumerate_subgraphs
from gflowexplainer.flow.paper_policy import PaperPolicy
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import TOO_SMALL
from gflowexplainer.testing import house, random_graph, star

POLICIES = {
    "additive": lambda n: AdditivePolicy(3, 5),
    "additive with identities": lambda n: AdditivePolicy(3, 5, identities=n),
    "paper on the graph": lambda n: PaperPolicy(3),
    "paper on the frontier": lambda n: PaperPolicy(3, propagation="frontier"),
    "paper, one layer": lambda n: PaperPolicy(3, layers=1, alpha=0.3),
}


def setup(name, rooted):
    instances = Instances.of_graphs([random_graph(9, 0.3, seed) for seed in range(3)] + [house()])
    start = instances.ptr[:-1] + 2 if rooted else None
    states = enumerate_subgraphs(instances, torch.arange(4), start, 5).states
    torch.manual_seed(0)
    policy = POLICIES[name](instances.num_nodes).double()
    policy.fit_scale(instances.x.double())
    return policy, policy.encode(instances, instances.x.double()), states


@pytest.mark.parametrize("rooted", [True, False])
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("rule", ["dag", "sequence"])
def test_inflows_equal_the_flows_of_really_built_parents(name, rooted, rule):
    policy, encoding, states = setup(name, rooted)
    parents = states.parents(rule)
    inflows = policy.log_inflows(encoding, states, parents)
    assert torch.equal(torch.isfinite(inflows), parents)
    state, slot = torch.nonzero(parents, as_tuple=True)
    built = states.without(state, slot)
    action, _ = policy.log_flows(encoding, built)
    removed = states.members[state, slot]
    hit = torch.nonzero(built.frontier == removed[built.frontier_state]).flatten()
    assert hit.numel() == state.numel()
    torch.testing.assert_close(action[hit], inflows[state, slot])


@pytest.mark.parametrize("name", POLICIES)
def test_a_batch_gives_what_its_members_give_alone(name):
    policy, encoding, states = setup(name, True)
    action, stop = policy.log_flows(encoding, states)
    for row in (0, len(states) // 2, len(states) - 1):
        alone_action, alone_stop = policy.log_flows(encoding, states.select(torch.tensor([row])))
        torch.testing.assert_close(alone_stop[0], stop[row])
        torch.testing.assert_close(alone_action, action[states.frontier_ptr[row] : states.frontier_ptr[row + 1]])


@pytest.mark.parametrize("name", [n for n in POLICIES if "identities" not in n])
def test_the_order_of_insertion_does_not_matter(name):
    policy, encoding, states = setup(name, False)
    turned = states.subgraphs.members.clone()
    last = torch.nonzero(states.size == 4).flatten()
    turned[last, :4] = turned[last, :4].flip(1)
    other = type(states).of_sets(states.instances, type(states.subgraphs)(states.instance, turned), False)
    action, stop = policy.log_flows(encoding, states)
    again, again_stop = policy.log_flows(encoding, other)
    torch.testing.assert_close(action, again)
    torch.testing.assert_close(stop, again_stop)


@pytest.mark.parametrize("name", POLICIES)
def test_gradients_reach_every_parameter(name):
    policy, _, states = setup(name, True)
    encoding = policy.encode(states.instances, states.instances.x.double())
    action, stop = policy.log_flows(encoding, states)
    inflow = policy.log_inflows(encoding, states, states.parents("dag"))
    (action.sum() + stop.square().sum() + inflow[torch.isfinite(inflow)].sum()).backward()
    for label, parameter in policy.named_parameters():
        assert parameter.grad is not None, label
        assert torch.isfinite(parameter.grad).all(), label


@pytest.mark.parametrize("name", POLICIES)
def test_an_empty_state_never_stops(name):
    policy, encoding, states = setup(name, False)
    _, stop = policy.log_flows(encoding, states)
    assert torch.equal(torch.isinf(stop), states.size == 0)


def test_the_lower_size_bound_lowers_the_stop_flow_of_states_that_can_grow():
    instances = Instances.of_graphs([star(4)])
    states = enumerate_subgraphs(instances, torch.tensor([0]), torch.tensor([0]), 5).states
    torch.manual_seed(0)
    free = AdditivePolicy(3, 5)
    torch.manual_seed(0)
    bounded = AdditivePolicy(3, 5, min_nodes=3)
    _, stop = free.log_flows(free.encode(instances, instances.x), states)
    _, lowered = bounded.log_flows(bounded.encode(instances, instances.x), states)
    torch.testing.assert_close(lowered - stop, torch.where(states.size < 3, TOO_SMALL, 0.0))


def test_features_are_standardised_by_what_was_seen_in_training():
    policy = AdditivePolicy(2, 3)
    seen = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    policy.fit_scale(seen)
    # A constant feature keeps its unit; it must not be divided by zero.
    torch.testing.assert_close(policy.standardize(seen), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    assert "feature_mean" in policy.state_dict()
