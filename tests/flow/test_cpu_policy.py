"""The additive policy by NumPy beside the same by torch."""

import pytest
import torch

from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.cpu_policy import CpuEncoding, encode_on_cpu
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import house, path, random_graph


def a_policy(identities=0):
    torch.manual_seed(1)
    policy = AdditivePolicy(3, 7, hidden=16, identities=identities).double()
    policy.fit_scale(torch.randn(40, 3).double())
    return policy


def assert_same(found, wanted, nodes):
    torch.testing.assert_close(torch.from_numpy(found.candidate), torch.from_numpy(wanted.candidate))
    torch.testing.assert_close(torch.from_numpy(found.member), torch.from_numpy(wanted.member))
    torch.testing.assert_close(torch.from_numpy(found.root(nodes)), torch.from_numpy(wanted.root(nodes)))
    assert (found.degree == wanted.degree).all()


@pytest.mark.parametrize("products", [1, 1 << 19])
def test_settled_weights_encode_nodes_as_torch_does(products, monkeypatch):
    monkeypatch.setattr("gflowexplainer.flow.cpu_policy._PRODUCTS", products)
    instances, policy = Instances.of_graphs([house(), path(4), random_graph(11, 0.3, 1)]), a_policy()
    every, features = torch.arange(len(instances)), instances.x.double()
    wanted = CpuEncoding.of(policy.encode(instances, features, every))
    policy.requires_grad_(False)
    found = encode_on_cpu(policy, instances, features, every)
    assert found.row is None
    assert_same(found, wanted, every.numpy())


@pytest.mark.parametrize("identities", [0, 9])
def test_where_some_instances_are_asked_about_torch_encodes_them(identities):
    instances, policy = Instances.of_graphs([house(), path(4)]), a_policy(identities)
    policy.requires_grad_(False)
    only, features = torch.tensor([1]), instances.x.double()
    found = encode_on_cpu(policy, instances, features, only)
    wanted = CpuEncoding.of(policy.encode(instances, features, only))
    assert (found.row == wanted.row).all()
    assert_same(found, wanted, torch.arange(4).numpy())


def test_weights_that_are_still_learned_are_read_anew():
    instances, policy = Instances.of_graphs([house()]), a_policy()
    every, features = torch.arange(1), instances.x.double()
    before = encode_on_cpu(policy, instances, features, every)
    with torch.no_grad():
        policy.per_node.weight.mul_(-1)
    assert not (encode_on_cpu(policy, instances, features, every).candidate == before.candidate).all()
