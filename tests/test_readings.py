import pytest
import torch

from gflowexplainer.flow.exact import enumerate_subgraphs, exact_marginals
from gflowexplainer.flow.policy import AdditivePolicy
from gflowexplainer.flow.sampling import follow_policy, roll_out
from gflowexplainer.instances import Instances
from gflowexplainer.readings import importance_weights, read_samples
from gflowexplainer.subgraphs import Subgraphs
from gflowexplainer.testing import house, random_graph


def test_samples_are_counted():
    instances = Instances.of_graphs([house()])
    samples = Subgraphs(torch.zeros(4, dtype=torch.long), torch.tensor([[0, 1], [1, 0], [0, 1], [0, 3]]))
    reading = read_samples(instances, samples)
    torch.testing.assert_close(reading.node, torch.tensor([1, 0.75, 0, 0.25, 0], dtype=torch.double))
    assert sorted(reading.probability.tolist()) == pytest.approx([0.25, 0.75])
    assert float(reading.effective_size) == pytest.approx(4)


def test_weights_are_normalised_within_each_instance():
    instances = Instances.of_graphs([house(), house()])
    samples = Subgraphs(torch.tensor([0, 0, 1]), torch.tensor([[0, 1], [0, 3], [5, 6]]))
    reading = read_samples(instances, samples, torch.tensor([3.0, 1.0, 1e-30]).log())
    assert reading.node[:5].tolist() == pytest.approx([1, 0.75, 0, 0.25, 0])
    assert reading.node[5:].tolist() == pytest.approx([1, 1, 0, 0, 0])
    assert reading.effective_size.tolist() == pytest.approx([1 / (0.75**2 + 0.25**2), 1])


@pytest.mark.parametrize("rooted", [True, False])
def test_weighted_samples_of_any_policy_tend_to_the_target(rooted):
    instances = Instances.of_graphs([house(), random_graph(7, 0.2, 1)])
    start = instances.ptr[:-1] if rooted else None
    enumeration = enumerate_subgraphs(instances, torch.arange(2), start, 4)
    value = torch.randn(instances.num_nodes, generator=torch.Generator().manual_seed(2))

    def reward(subgraphs):
        return torch.where(subgraphs.filled, value[subgraphs.members.clamp(min=0)], 0).sum(dim=1)

    node, edge = exact_marginals(enumeration, enumeration.normalize(reward(enumeration.subgraphs).double()))
    torch.manual_seed(0)
    policy = AdditivePolicy(3, 4)
    encoding = policy.encode(instances, instances.x)
    several = torch.arange(2).repeat_interleave(20_000)
    starts = None if start is None else start[several]
    rollouts = roll_out(instances, several, starts, 4, follow_policy(policy, encoding))
    weight = importance_weights(policy, encoding, rollouts, reward(rollouts.subgraphs))
    reading = read_samples(instances, rollouts.subgraphs, weight)
    torch.testing.assert_close(reading.node, node, atol=0.03, rtol=0)
    torch.testing.assert_close(reading.neighbor, edge, atol=0.03, rtol=0)
    # Counting alone gives the policy's answer, which is another one.
    counted = read_samples(instances, rollouts.subgraphs)
    assert (counted.node - node).abs().max() > 0.05
