"""The policy that grows subgraphs, held against every walk of a small graph."""

import pytest
import torch

from gflowbench.datasets import Benchmark
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.rg_policy import log_likelihood, policy_gradient_loss
from gflowbench.explainers.rg_pretraining import in_order
from gflowbench.explainers.rg_reward import RGReward
from gflowexplainer.flow.sampling import roll_out
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.segments import segment_sum
from gflowexplainer.testing import NodeModel, house

WEIGHTS = {"edge_weight": 0.01, "distance_weight": 1.0, "radius_weight": 0.1}


def little_house():
    """The house with node 2 explained, small enough to list every walk."""
    graph = house()
    graph.y = torch.zeros(5, dtype=torch.long)
    return Subject.of(NodeModel(), Benchmark.from_graphs([graph], task="node", index=[2], num_classes=3))


def every_walk(policy, encoding, states, log_p):
    """Follows every sequence of actions to its end: members in order and log-probability."""
    action, stop = policy.log_flows(encoding, states)
    yield states.members[0], log_p + stop[0]
    for position in range(states.frontier.numel()):
        yield from every_walk(policy, encoding, states.step(torch.tensor([position])), log_p + action[position])


@pytest.fixture(scope="module")
def walks(random_policy):
    """All walks of at most three nodes, their rewards, and the gradient of the expected reward."""
    about = little_house()
    policy = random_policy(about)
    encoding = policy.encode(about.instances, about.instances.x.double())
    first = States.initial(about.instances, torch.tensor([0]), about.instances.center, 3)
    found = list(every_walk(policy, encoding, first, torch.zeros((), dtype=torch.double)))
    members = torch.stack([walk for walk, _ in found])
    probability = torch.stack([log_p for _, log_p in found]).exp()
    instance = torch.zeros(len(found), dtype=torch.long)
    reward = RGReward(about.predictor, about.instances, target=about.target, **WEIGHTS)
    score = reward.log_score(Subgraphs(instance, members)).double()
    truth = torch.autograd.grad((probability * score).sum(), list(policy.parameters()), allow_unused=True)
    return about, policy, members, probability.detach(), score, truth


def gradient_of(loss, policy):
    return torch.autograd.grad(loss, list(policy.parameters()), allow_unused=True)


def assert_opposite(gradient, truth):
    assert any(part is not None and part.abs().max() > 1e-4 for part in truth)
    for mine, wanted in zip(gradient, truth, strict=True):
        assert (mine is None) == (wanted is None)
        if mine is not None:
            assert torch.allclose(-mine, wanted, atol=1e-10)


def test_probabilities_of_all_walks_sum_to_one(walks):
    _, _, members, probability, _, _ = walks
    assert len({tuple(row) for row in members.tolist()}) == len(members) > 6
    assert float(probability.sum()) == pytest.approx(1, abs=1e-12)


def test_expected_policy_gradient_is_the_gradient_of_the_expected_reward(walks):
    about, policy, members, probability, score, truth = walks
    encoding = policy.encode(about.instances, about.instances.x.double())
    count = len(members)
    zeros = torch.zeros(count, dtype=torch.long)
    again = roll_out(about.instances, zeros, members[:, 0], members.size(1), in_order(members), ordered=True)
    assert torch.equal(again.subgraphs.members, members)
    likelihood = log_likelihood(policy, encoding, again)
    assert torch.allclose(segment_sum(likelihood, again.rollout, count).exp(), probability)
    loss = policy_gradient_loss(likelihood, again.rollout, count * probability * score)
    assert_opposite(gradient_of(loss, policy), truth)
