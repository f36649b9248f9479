"""ROC-AUC of edge scores: one over the edges of all instances together, and one for each instance."""

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from gflowexplainer.ops.segments import pointers, segment_sum


def pooled_auc(score: Tensor, positive: Tensor) -> float:
    """Computes one ROC-AUC over all edges together.

    Args:
        score: Scores of edges, shape ``[p]``.
        positive: Whether each is in the ground truth, shape ``[p]``.

    Returns:
        The AUC; ``nan`` where there are only positives or only negatives, since nothing can then be ranked.
    """
    if bool(positive.all()) or not bool(positive.any()):
        return float("nan")
    return float(roc_auc_score(positive.cpu().numpy(), score.detach().cpu().double().numpy()))


def instance_auc(score: Tensor, positive: Tensor, owner: Tensor, num_instances: int) -> Tensor:
    r"""Computes the ROC-AUC of every instance at once, from ranks.

    With :math:`P` positives, :math:`N` negatives and :math:`r` the ranks, where ties share their mean rank,

    .. math:: \text{AUC} = \frac{\sum_{\text{positives}} r - P (P + 1) / 2}{P N}

    Args:
        score: Scores of edges, shape ``[p]``.
        positive: Whether each is in the ground truth, shape ``[p]``.
        owner: Instance of each, shape ``[p]``.
        num_instances: ``I``.

    Returns:
        AUCs, shape ``[I]``; ``nan`` for an instance with only positives or only negatives.
    """
    order = torch.argsort(score, stable=True)
    order = order[torch.argsort(owner[order], stable=True)]
    score, positive, owner = score[order], positive[order], owner[order]
    counts = torch.bincount(owner, minlength=num_instances)
    place = torch.arange(owner.numel(), device=owner.device) - pointers(counts)[:-1][owner]

    begins = torch.ones_like(positive, dtype=torch.bool)
    begins[1:] = (owner[1:] != owner[:-1]) | (score[1:] != score[:-1])
    tie = torch.cumsum(begins, 0) - 1
    ties = int(begins.sum())
    rank = segment_sum(place.double(), tie, ties) / torch.bincount(tie, minlength=ties) + 1

    hits = segment_sum(positive.double(), owner, num_instances)
    misses = counts - hits
    above = segment_sum(torch.where(positive, rank[tie], 0.0), owner, num_instances) - hits * (hits + 1) / 2
    return above / (hits * misses)


def mean_auc(score: Tensor, positive: Tensor, owner: Tensor, num_instances: int) -> float:
    """Averages :func:`instance_auc` over the instances that have both positives and negatives."""
    values = instance_auc(score, positive, owner, num_instances)
    values = values[~values.isnan()]
    return float(values.mean()) if values.numel() else float("nan")
