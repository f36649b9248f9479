"""Connected subgraphs without any model: random growth and breadth-first search, batched."""

import torch
from torch import Tensor

from gflowexplainer.flow.sampling import grow_at_random
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.ops.segments import pointers


def start_nodes(instances: Instances, instance: Tensor, draw: Tensor, seed: int) -> Tensor:
    """Chooses where subgraphs begin: at the explained node, or at graph level at any node with equal chance.

    Args:
        instances: The instances.
        instance: Instance of each subgraph, shape ``[B]``.
        draw: Number of each subgraph among those of its instance, shape ``[B]``.
        seed: Names the random numbers.

    Returns:
        Flat node positions, shape ``[B]``.
    """
    if instances.level == "node":
        return instances.center[instance]
    chance = uniform(seed, instances.own_key[instance], draw, 0)
    return instances.ptr[instance] + (chance * instances.node_counts[instance]).long()


def grow(instances: Instances, instance: Tensor, draw: Tensor, max_nodes: int, seed: int) -> Subgraphs:
    """Grows subgraphs by one neighbour at a time, each with equal chance, up to ``max_nodes`` nodes.

    The random numbers are named by seed, instance, ``draw``, step and node, so no batch changes a subgraph.

    Args:
        instances: The instances.
        instance: Instance of each subgraph, shape ``[B]``.
        draw: Number of each subgraph among those of its instance, shape ``[B]``.
        max_nodes: Size ``K``; a subgraph stays smaller only where its component is.
        seed: Names the random numbers.
    """
    key = combine(seed, instances.own_key[instance], draw)
    return grow_at_random(instances, instance, start_nodes(instances, instance, draw, seed), max_nodes, key)


def breadth_first(instances: Instances, max_nodes: int, seed: int) -> Tensor:
    """Lists the nodes nearest to a start node, nearest first, equally near ones in random order.

    Node ids must not decide: in the benchmarks they tell motifs from the rest.

    Returns:
        Flat node positions, shape ``[I, max_nodes]``; ``-1`` fills up.
    """
    everything = torch.arange(len(instances), device=instances.device)
    start = start_nodes(instances, everything, torch.zeros_like(everything), seed)
    hops = instances.hops_from(start)
    owner = instances.owner
    chance = uniform(seed, instances.own_key[owner], instances.key, 1)
    reached = torch.nonzero(hops >= 0).flatten()
    order = reached[torch.argsort(hops[reached] + chance[reached])]
    order = order[torch.argsort(owner[order], stable=True)]
    first = pointers(torch.bincount(owner[order], minlength=len(instances)))[:-1]
    place = torch.arange(order.numel(), device=order.device) - first[owner[order]]
    listed = torch.full((len(instances), max_nodes), -1, dtype=torch.long, device=instances.device)
    near = place < max_nodes
    listed[owner[order[near]], place[near]] = order[near]
    return listed
