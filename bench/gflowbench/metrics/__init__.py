"""Metrics for any explanation of any explainer."""

from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import METRICS, MetricSettings, measure

__all__ = ["METRICS", "GroundTruth", "MetricSettings", "measure"]
