"""Accuracy of the first k nodes (the paper's last table)."""

from gflowbench.explainers.interface import Scores
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.selection import counts_of, first_nodes
from gflowexplainer.graphs.instances import Instances


def accuracy_of_first(instances: Instances, scores: Scores, truth: GroundTruth) -> float:
    """Computes the share of the first k nodes of an explanation that lie in the motif, averaged.

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
