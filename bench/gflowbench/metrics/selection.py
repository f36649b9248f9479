"""Hard explanations: the nodes that an explainer would name if it had to choose, and how many of them are right."""

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores
from gflowbench.metrics.ground_truth import GroundTruth
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import uniform


def ranked_nodes(instances: Instances, scores: Scores) -> Tensor:
    """Ranks the nodes of each instance: 0 is the first one the explainer names.

    Nodes come in the order they were picked where the explainer picked them; otherwise, and after those, by
    score. Equal scores are put in a random order, the same one each time, because the order of node ids tells
    motifs from the rest in the benchmarks.

    Returns:
        Ranks, shape ``[n]``.
    """
    owner = instances.owner
    chance = uniform(instances.own_key[owner], instances.key, 2)
    order = torch.argsort(chance)
    order = order[torch.argsort(scores.node[order], descending=True, stable=True)]
    if scores.order is not None:
        order = order[torch.argsort(pick_places(instances, scores.order)[order], stable=True)]
    order = order[torch.argsort(owner[order], stable=True)]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device) - instances.ptr[owner[order]]
    return rank


def pick_places(instances: Instances, order: Tensor) -> Tensor:
    """Tells when each node was picked in ``order`` ``[I, K]``, shape ``[n]``; ``K`` for nodes not picked."""
    place = torch.full((instances.num_nodes,), order.size(1), dtype=torch.long, device=order.device)
    picked = order >= 0
    place[order[picked]] = torch.arange(order.size(1), device=order.device).expand_as(order)[picked]
    return place


def first_nodes(instances: Instances, scores: Scores, count: Tensor | int) -> Tensor:
    """Marks the first ``count`` nodes of each instance, shape ``[n]``.

    An explainer that picked fewer in order is not given more, and one that says itself which nodes are its
    explanation is only ranked among those.

    Args:
        instances: The instances.
        scores: Their scores.
        count: Number of nodes, the same for all or of shape ``[I]``.
    """
    wanted = torch.as_tensor(count, device=instances.device).expand(len(instances))[instances.owner]
    chosen = ranked_nodes(instances, scores) < wanted
    if scores.order is not None:
        chosen &= pick_places(instances, scores.order) < scores.order.size(1)
    return chosen if scores.selected is None else chosen & scores.selected


def hard_explanation(instances: Instances, scores: Scores, count: int) -> Tensor:
    """Marks the nodes of the explanation ``[n]``: those the explainer selected, else its first ``count``."""
    return first_nodes(instances, scores, count) if scores.selected is None else scores.selected


def counts_of(instances: Instances, mask: Tensor) -> Tensor:
    """Counts the marked nodes of each instance, shape ``[I]``."""
    return torch.bincount(instances.owner[mask], minlength=len(instances))


def accuracy_of_first(instances: Instances, scores: Scores, truth: GroundTruth) -> float:
    """Computes the share of the first k nodes of an explanation that lie in the motif (the paper's last table).

    ``k`` is the number of nodes of the motif, as many as the instance holds: a motif that reaches out of the
    computation graph of the explained node must not cost accuracy. An explanation with fewer than ``k``
    nodes is divided by ``k`` all the same. Instances without a motif of their own are left out.

    Returns:
        The accuracy, in [0, 1]; ``nan`` if no instance has a motif.
    """
    size = counts_of(instances, truth.node)
    first = first_nodes(instances, scores, size)
    share = counts_of(instances, first & truth.node).double() / size
    share = share[size > 0]
    return float(share.mean()) if share.numel() else float("nan")
