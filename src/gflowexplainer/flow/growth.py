"""Random growth that remembers nothing but where it ends, for what is measured before anything is learned."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import pointers
from gflowexplainer.ops.sorting import unique


def grow_at_random(
    instances: Instances, instance: Tensor, start: Tensor | None, max_nodes: int, key: Tensor
) -> Subgraphs:
    """Adds one neighbour after the other, each with equal chance, until there are ``max_nodes`` nodes or no more.

    That is where rollouts with the same keys end if they choose by
    :func:`~gflowexplainer.flow.sampling.grow_uniformly`; here no state on the way is built.

    Args:
        instances: The instances.
        instance: Instance of each subgraph, shape ``[R]``.
        start: Node that each begins with, shape ``[R]``; ``None`` begins with any node.
        max_nodes: Size bound.
        key: A random key of each, shape ``[R]``.
    """
    total, count = instances.num_nodes, instance.numel()
    max_nodes = max(1, min(max_nodes, instances.largest))
    chance = uniform(key, torch.arange(max_nodes, device=key.device)[:, None], 0)
    if start is None:
        start = instances.ptr[instance] + (chance[0] * instances.node_counts[instance]).long()
        chance = chance[1:]
    members = torch.full((count, max_nodes), -1, device=instance.device)
    members[:, 0] = start
    # What each may gain next, as ascending numbers of subgraph and node.
    owner, node = instances.neighbors_of(start)
    border = owner * total + node
    for size in range(1, max_nodes):
        counts = torch.bincount(border // total, minlength=count)
        grows = torch.nonzero(counts).flatten()
        chosen = pointers(counts)[grows] + (chance[size - 1, grows] * counts[grows]).long()
        node = border[chosen] % total
        members[grows, size] = node
        owner, neighbor = instances.neighbors_of(node)
        owner = grows[owner]
        outside = ~(members[owner, : size + 1] == neighbor[:, None]).any(dim=1)
        left = torch.ones_like(border, dtype=torch.bool)
        left[chosen] = False
        border = unique(torch.cat([border[left], (owner * total + neighbor)[outside]]), runs=True)
    return Subgraphs(instance, members)
