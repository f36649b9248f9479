"""Where RG-Explainer begins in a graph: the subgraphs that its locator learns from, and the loss it learns by."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.segments import pointers, segment_logsumexp


def neighborhoods(instances: Instances, node: Tensor, hops: int) -> Subgraphs:
    """Lists all nodes at most ``hops`` steps away from each of some nodes ``[R]``, the node itself first."""
    total = instances.num_nodes
    newest = torch.arange(node.numel(), device=node.device) * total + node
    known, step = [newest], [torch.zeros_like(newest)]
    for number in range(1, hops + 1):
        entry, reached = instances.neighbors_of(newest % total)
        newest = torch.unique(newest[entry] // total * total + reached)
        newest = newest[~torch.isin(newest, torch.cat(known))]
        known.append(newest)
        step.append(torch.full_like(newest, number))
    found, steps = torch.cat(known), torch.cat(step)
    order = torch.argsort(found // total * (hops + 1) + steps, stable=True)
    row, member = found[order] // total, found[order] % total
    count = torch.bincount(row, minlength=node.numel())
    members = torch.full((node.numel(), int(count.max())), -1, device=node.device)
    members[row, torch.arange(row.numel(), device=row.device) - pointers(count)[row]] = member
    return Subgraphs(instances.owner[node], members)


def expected_loss(log_rating: Tensor, score: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    r"""Minus the expectation of what was found at a node, over the nodes that the locator would begin with.

    With :math:`q` the softmax of the rewards and :math:`p` the locator's probabilities it is
    :math:`-\sum_v q_v p_v`, a mean over graphs. That is what the public code minimises: it hands probabilities to a
    divergence that takes their logarithms. Its minimum puts everything on the best node, and there its gradient
    vanishes, whereas the divergence, where rewards are nearly alike, pulls the locator back to nearly uniform.

    Args:
        log_rating: The locator's log-probabilities of some nodes ``[N]``.
        score: Reward of what was found at each of these nodes, shape ``[N]``.
        graph: Graph of each node, shape ``[N]``.
        num_graphs: Number of graphs.
    """
    wanted = (score - segment_logsumexp(score, graph, num_graphs)[graph]).exp()
    return -(wanted * log_rating.exp()).sum() / max(int(torch.unique(graph).numel()), 1)
