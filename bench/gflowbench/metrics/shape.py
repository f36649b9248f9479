"""The shape of explanations: how large they are, how much they leave out, whether they hang together."""

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gflowbench.metrics.selection import counts_of
from gflowbench.metrics.undirected import UndirectedEdges
from gflowexplainer.graphs.instances import Instances


def size(instances: Instances, explanation: Tensor) -> float:
    """Averages the number of nodes of the explanations, given as a mask ``[n]``."""
    return float(counts_of(instances, explanation).double().mean())


def sparsity(instances: Instances, explanation: Tensor) -> float:
    r"""Averages :math:`1 - |s_i| / |G_i|`, the share of an instance's nodes that is left out."""
    share = counts_of(instances, explanation).double() / instances.node_counts
    return float((1 - share).mean())


def is_connected(instances: Instances, explanation: Tensor) -> Tensor:
    """Tells which explanations are one component of the undirected graph ``[I]``; an empty one is not."""
    nodes = instances.num_nodes
    ends = UndirectedEdges.of(instances).ends
    edges = ends[:, explanation[ends].all(dim=0)].cpu().numpy()
    adjacency = coo_matrix((np.ones(edges.shape[1], dtype=np.int8), (edges[0], edges[1])), shape=(nodes, nodes))
    component = torch.from_numpy(connected_components(adjacency, directed=False)[1]).to(instances.device)
    used = torch.unique(component[explanation])
    place = torch.full((nodes,), nodes, dtype=torch.long, device=instances.device)
    place.scatter_reduce_(0, component.long(), torch.arange(nodes, device=instances.device), "amin")
    return torch.bincount(instances.owner[place[used.long()]], minlength=len(instances)) == 1


def connectivity(instances: Instances, explanation: Tensor) -> float:
    """Computes the share of explanations that are one component."""
    return float(is_connected(instances, explanation).double().mean())


def stability(ptr: Tensor, explanations: Tensor) -> float:
    r"""Computes how much explanations of the same instances from different seeds agree.

    For each instance, the Jaccard index :math:`|s \cap s'| / |s \cup s'|` averaged over all pairs of seeds;
    then the mean over instances. Two empty explanations agree.

    Args:
        ptr: First node of each instance, shape ``[I + 1]``.
        explanations: Masks of ``S`` seeds, shape ``[S, n]``.

    Returns:
        The stability, in [0, 1]; ``nan`` for a single seed.
    """
    seeds = explanations.size(0)
    if seeds < 2:
        return float("nan")
    first, second = torch.triu_indices(seeds, seeds, offset=1)
    total = 0.0
    for one, other in zip(first.tolist(), second.tolist(), strict=True):
        both = _sums(ptr, explanations[one] & explanations[other])
        either = _sums(ptr, explanations[one] | explanations[other])
        total += float(torch.where(either > 0, both / either.clamp(min=1), 1.0).mean())
    return total / first.numel()


def _sums(ptr: Tensor, mask: Tensor) -> Tensor:
    """Counts marks within the segments of ``ptr``, shape ``[I]``."""
    running = torch.cat([mask.new_zeros(1, dtype=torch.double), mask.double().cumsum(0)])
    return running[ptr].diff()
