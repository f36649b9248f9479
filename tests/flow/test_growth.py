"""Random growth ends where rollouts end."""

import pytest
import torch

from gflowexplainer.flow.growth import grow_at_random
from gflowexplainer.flow.sampling import grow_uniformly, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import house, random_graph


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
