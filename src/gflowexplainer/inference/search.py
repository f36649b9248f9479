"""Beam search for the best subgraphs under a reward: what a flow network is measured against, and needs no training.

Of the connected subgraphs of each size, those with the highest reward are kept and grow by one neighbour each. What it
finds is a list of good subgraphs, weighed by their reward among themselves: no sample of the distribution, as what the
beam passed by counts nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, marginals, place_keys
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.ops.segments import pointers, ranges, segment_logsumexp, segment_sum
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.base import Reward


@torch.no_grad()
def search_subgraphs(reward: Reward, max_nodes: int, width: int) -> Subgraphs:
    """Finds good connected subgraphs of every instance: up to ``width`` of each size, repeats excluded.

    Args:
        reward: What is maximised.
        max_nodes: Nodes of a subgraph, at most.
        width: Subgraphs of each size that grow further, in each instance.
    """
    instances = reward.instances
    if instances.level == "graph":
        start = torch.arange(instances.num_nodes, device=instances.device)
    else:
        start = instances.center
    members = torch.full((start.numel(), max_nodes), -1, device=instances.device)
    members[:, 0] = start
    beam, kept = _best(reward, Subgraphs(instances.owner[start], members), width), []
    for size in range(1, max_nodes + 1):
        kept.append(beam)
        if size == max_nodes:
            break
        grown = _grown(instances, beam, size)
        if not len(grown):
            break
        beam = _best(reward, grown, width)
    return Subgraphs.cat(kept)


def _grown(instances: Instances, beam: Subgraphs, size: int) -> Subgraphs:
    """Adds each neighbour to each subgraph of ``size`` nodes, every result once."""
    members = beam.members[:, :size].flatten()
    first, count = (
        instances.neighbor_ptr[members],
        instances.neighbor_ptr[members + 1] - instances.neighbor_ptr[members],
    )
    slot, entry = ranges(first, count)
    row, node = slot // size, instances.neighbor[entry]
    new = (beam.members[row] != node[:, None]).all(dim=1)
    row, node = row[new], node[new]
    grown = Subgraphs(beam.instance[row], beam.members[row].index_fill(1, torch.tensor([size], device=row.device), 0))
    grown.members[:, size] = node
    _, once, _ = first_of_each(place_keys(instances, grown))
    return grown[once]


def _best(reward: Reward, subgraphs: Subgraphs, width: int) -> Subgraphs:
    """Keeps the ``width`` subgraphs of each instance with the highest reward."""
    score = reward.log_score(subgraphs)
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(subgraphs.instance[order], stable=True)]
    counts = torch.bincount(subgraphs.instance, minlength=len(reward.instances))
    place = torch.arange(order.numel(), device=order.device) - pointers(counts)[subgraphs.instance[order]]
    return subgraphs[order[place < width]]


@torch.no_grad()
def estimate_from_search(reward: Reward, max_nodes: int, min_nodes: int, width: int) -> tuple[Estimates, Tensor]:
    """Searches, and weighs what was found by its reward; the second result is the effective number in each instance.

    Args:
        reward: What is maximised.
        max_nodes: Nodes of a subgraph, at most.
        min_nodes: Nodes at least, where the instance has so many.
        width: Subgraphs of each size that grow further, in each instance.
    """
    instances = reward.instances
    found = search_subgraphs(reward, max_nodes, width)
    largest = torch.zeros(len(instances), dtype=torch.long, device=instances.device)
    largest = largest.scatter_reduce(0, found.instance, found.size, "amax")
    found = found[torch.nonzero(found.size >= largest.clamp(max=min_nodes)[found.instance]).flatten()]
    log_reward = reward.log_reward(found, torch.zeros_like(found.instance, dtype=torch.bool)).double()
    total = segment_logsumexp(log_reward, found.instance, len(instances))
    probability = (log_reward - total[found.instance]).exp()
    effective = 1 / segment_sum(probability.square(), found.instance, len(instances)).clamp(min=1e-300)
    return Estimates(found, probability, *marginals(instances, found, probability)), effective
