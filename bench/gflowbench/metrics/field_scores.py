r"""Scores that other benchmarks of explainers use: GraphXAI's, GraphFramEx's, and sufficiency by size.

GraphXAI (Agarwal et al., 2023) scores the agreement of an explanation with the truth by the Jaccard index, GEA; its
unfaithfulness GEF is :math:`1 - \exp(-\mathrm{KL}(f(G) \,\|\, f(s)))`, computed in
:mod:`gflowbench.metrics.fidelity`. GraphFramEx (Amara et al., 2022) weighs both fidelities by their harmonic mean, the
characterization score.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.metrics.auc import instance_auc
from gflowbench.metrics.fidelity import losses, predict_kept
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.selection import counts_of, first_nodes
from gflowexplainer.graphs.instances import Instances

CURVE_SIZES = (1, 2, 4, 8, 16)
"""Numbers of nodes at which sufficiency is measured."""


def explanation_accuracy(instances: Instances, explanation: Tensor, truth: GroundTruth) -> float:
    r"""Averages the Jaccard index of explanation ``[n]`` and truth (GEA) over the instances that have a truth.

    .. math:: \text{GEA} = \frac{TP}{TP + FP + FN}
    """
    both = counts_of(instances, explanation & truth.node).double()
    either = counts_of(instances, explanation | truth.node)
    known = counts_of(instances, truth.node) > 0
    return float((both / either.clamp(min=1))[known].mean()) if bool(known.any()) else math.nan


def node_auc(instances: Instances, scores: Scores, truth: GroundTruth) -> float:
    """Averages the ROC-AUC of node scores over instances; the explained node, which all know, does not count."""
    others = torch.ones(instances.num_nodes, dtype=torch.bool, device=instances.device)
    others[instances.center[instances.center >= 0]] = False
    values = instance_auc(scores.node[others], truth.node[others], instances.owner[others], len(instances))
    values = values[~values.isnan()]
    return float(values.mean()) if values.numel() else math.nan


def characterization(plus: float, minus: float, weight: float = 0.5) -> float:
    r"""Computes the weighted harmonic mean of fidelity+ and 1 - fidelity-.

    .. math:: \left(\frac{w}{\text{fidelity}_+} + \frac{1 - w}{1 - \text{fidelity}_-}\right)^{-1}

    Args:
        plus: Fidelity+, cut to [0, 1].
        minus: Fidelity-, cut to [0, 1].
        weight: Weight :math:`w` of fidelity+.
    """
    if math.isnan(plus) or math.isnan(minus):
        return math.nan
    plus, kept = min(max(plus, 0.0), 1.0), 1 - min(max(minus, 0.0), 1.0)
    return 1 / (weight / plus + (1 - weight) / kept) if plus and kept else 0.0


def sufficiency_curve(subject: Subject, scores: Scores, sizes: tuple[int, ...] = CURVE_SIZES) -> dict[int, float]:
    """Measures fidelity- of the first nodes of an explanation by their number.

    Args:
        subject: Model and instances.
        scores: What an explainer returned for them; nodes that it did not pick are ranked behind, by score.
        sizes: Numbers of nodes.
    """
    ranked = Scores(scores.node, scores.edge) if scores.order is None else _all_ranked(scores)
    return {
        size: float(losses(subject, predict_kept(subject, first_nodes(subject.instances, ranked, size))).mean())
        for size in sizes
    }


def _all_ranked(scores: Scores) -> Scores:
    """Returns scores in which picked nodes come first, in their order, and all others by score."""
    assert scores.order is not None
    node = scores.node.double().clone()
    picked = scores.order >= 0
    bonus = torch.arange(scores.order.size(1), 0, -1, device=node.device).expand_as(scores.order)
    node[scores.order[picked]] = node.max() + bonus[picked].double()
    return Scores(node, scores.edge)
