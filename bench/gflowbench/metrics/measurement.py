"""All metrics of one explainer on one benchmark, as a flat dictionary of numbers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.metrics.auc import mean_auc, pooled_auc
from gflowbench.metrics.fidelity import fidelity, robust_fidelity
from gflowbench.metrics.field_scores import characterization, explanation_accuracy, node_auc, sufficiency_curve
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.selection import accuracy_of_first, hard_explanation
from gflowbench.metrics.shape import connectivity, size, sparsity
from gflowbench.metrics.undirected import UndirectedEdges
from gflowexplainer.errors import ConfigError

METRICS: dict[str, str] = {
    "auc_own": "AUC, own motif, pooled",
    "auc_own_mean": "AUC, own motif, mean of instances",
    "auc_all": "AUC, all motifs, pooled",
    "auc_all_mean": "AUC, all motifs, mean of instances",
    "auc_node": "AUC of nodes, mean of instances",
    "accuracy": "accuracy of the first k nodes",
    "gea": "GEA: Jaccard index with the own motif",
    "fidelity_plus": "fidelity+, probability, induced",
    "fidelity_minus": "fidelity-, probability, induced",
    "fidelity_plus_label": "fidelity+, label, induced",
    "fidelity_minus_label": "fidelity-, label, induced",
    "fidelity_plus_isolate": "fidelity+, probability, isolate",
    "fidelity_minus_isolate": "fidelity-, probability, isolate",
    "fidelity_plus_label_isolate": "fidelity+, label, isolate",
    "fidelity_minus_label_isolate": "fidelity-, label, isolate",
    "robust_fidelity_plus": "robust fidelity+",
    "robust_fidelity_minus": "robust fidelity-",
    "characterization": "characterization score",
    "sufficiency_area": "fidelity-, mean over sizes 1 to 16",
    "unfaithfulness": "unfaithfulness",
    "sparsity": "sparsity",
    "connectivity": "connected explanations",
    "size": "nodes of an explanation",
}
"""Every metric of :func:`measure`, in order, and how tables call it."""


@dataclass(frozen=True)
class MetricSettings:
    """What the metrics leave open.

    Attributes:
        top_k: Nodes of a hard explanation; the motif size if not given.
        num_contexts: Draws of robust fidelity; 0 leaves it out.
        remove_share: Robust fidelity+: chance that a node of the explanation is removed.
        keep_share: Robust fidelity-: chance that another node is kept.
        seed: Names the draws of robust fidelity; the same for every explainer.
    """

    top_k: int | None = None
    num_contexts: int = 50
    remove_share: float = 0.1
    keep_share: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"'top_k' must be at least 1 (got {self.top_k}).")
        if self.num_contexts < 0:
            raise ConfigError(f"'num_contexts' must not be negative (got {self.num_contexts}).")


def measure(
    subject: Subject,
    scores: Scores,
    truth: GroundTruth | None,
    *,
    top_k: int,
    settings: MetricSettings | None = None,
) -> tuple[dict[str, float], Tensor]:
    """Measures everything that one set of scores allows to measure.

    Args:
        subject: Model and instances.
        scores: What the explainer returned for them.
        truth: Their ground truth; without it, AUC and accuracy are ``nan``.
        top_k: Nodes of a hard explanation.
        settings: What the metrics leave open.

    Returns:
        The value of every key of :data:`METRICS`, and the hard explanations as a mask ``[n]``.
    """
    settings = MetricSettings() if settings is None else settings
    instances = subject.instances
    explanation = hard_explanation(instances, scores, top_k)
    values = dict.fromkeys(METRICS, float("nan"))
    if truth is not None:
        values |= agreement(subject, scores, truth)
        values["gea"] = explanation_accuracy(instances, explanation, truth)
    values |= faithfulness(subject, explanation, settings)
    curve = sufficiency_curve(subject, scores)
    values["sufficiency_area"] = sum(curve.values()) / len(curve)
    values["sparsity"] = sparsity(instances, explanation)
    values["connectivity"] = connectivity(instances, explanation)
    values["size"] = size(instances, explanation)
    return values, explanation


def agreement(subject: Subject, scores: Scores, truth: GroundTruth) -> dict[str, float]:
    """Compares scores with the ground truth: AUC and accuracy."""
    instances = subject.instances
    edges = UndirectedEdges.of(instances)
    score = edges.merge(scores.edge)
    values = {}
    for name, mask in (("own", truth.own), ("all", truth.all)):
        positive = edges.merge(mask)
        values[f"auc_{name}"] = pooled_auc(score, positive)
        values[f"auc_{name}_mean"] = mean_auc(score, positive, edges.owner, len(instances))
    values["accuracy"] = accuracy_of_first(instances, scores, truth)
    values["auc_node"] = node_auc(instances, scores, truth)
    return values


def faithfulness(subject: Subject, explanation: Tensor, settings: MetricSettings) -> dict[str, float]:
    """Evaluates the model on hard explanations ``[n]``: fidelity, robust fidelity, unfaithfulness."""
    induced = fidelity(subject, explanation, "induced")
    # The prediction at a node cannot tell a missing neighbour from one without edges.
    at_node = subject.instances.level == "node"
    isolate = induced if at_node else fidelity(subject, explanation, "isolate")
    values = {
        "unfaithfulness": induced.unfaithfulness,
        "characterization": characterization(induced.plus, induced.minus),
    }
    for found, ending in ((induced, ""), (isolate, "_isolate")):
        values[f"fidelity_plus{ending}"] = found.plus
        values[f"fidelity_minus{ending}"] = found.minus
        values[f"fidelity_plus_label{ending}"] = found.plus_label
        values[f"fidelity_minus_label{ending}"] = found.minus_label
    if settings.num_contexts:
        plus, minus = robust_fidelity(
            subject,
            explanation,
            num_contexts=settings.num_contexts,
            remove_share=settings.remove_share,
            keep_share=settings.keep_share,
            seed=settings.seed,
        )
        values |= {"robust_fidelity_plus": plus, "robust_fidelity_minus": minus}
    return values
