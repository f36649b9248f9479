"""What is little is grown on the CPU: the same subgraphs as elsewhere."""

import torch
from tests.training.test_trainer import node_trainer

from gflowexplainer.training import growing
from gflowexplainer.training.growing import Growing


def test_a_twin_on_the_cpu_grows_the_same():
    sampler = node_trainer(rollouts=16).sampler
    batch = torch.arange(len(sampler.instances))
    here = Growing(sampler)
    there = here.grow(batch, 3)
    twin = here._grow_on_cpu(batch.repeat_interleave(16), 3)
    assert twin.flows is None
    assert twin.states.instances is sampler.instances
    assert torch.equal(twin.subgraphs.members, there.subgraphs.members)
    for name in ("state", "rollout", "chosen", "successor", "last"):
        assert torch.equal(getattr(twin, name), getattr(there, name))
    assert torch.equal(twin.states.frontier, there.states.frontier)


def test_the_twin_has_the_weights_of_the_moment(monkeypatch):
    sampler = node_trainer(rollouts=16).sampler
    batch = torch.arange(len(sampler.instances))
    grower = Growing(sampler)
    before = grower._grow_on_cpu(batch.repeat_interleave(16), 3).subgraphs.members
    with torch.no_grad():
        sampler.network.policy.stop_head[-1].bias += 20
    after = grower._grow_on_cpu(batch.repeat_interleave(16), 3).subgraphs.members
    assert (after >= 0).sum() < (before >= 0).sum()


def test_much_is_not_moved(monkeypatch):
    sampler = node_trainer(rollouts=4).sampler
    grower = Growing(sampler)
    calls = []
    monkeypatch.setattr(grower, "_grow_on_cpu", lambda several, _: calls.append(several) or sampler.sample(several, 1))
    grower._can_move = True
    for entries, moved in ((growing.FEW, 0), (growing.FEW - 1, 1)):
        grower._entries = entries
        grower.grow(torch.arange(2), 0)
        assert len(calls) == moved
        assert grower._entries < growing.FEW
