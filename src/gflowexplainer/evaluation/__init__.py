"""Metrics and the protocol by which every explainer is judged."""

from gflowexplainer.evaluation.bench import Contestant, ProtocolSettings
from gflowexplainer.evaluation.ground_truth import GroundTruth
from gflowexplainer.evaluation.metrics import METRICS, MetricSettings, measure
from gflowexplainer.evaluation.problems import Loaded, Problem, problem
from gflowexplainer.evaluation.protocol import evaluate
from gflowexplainer.evaluation.record import Cell, Record

__all__ = [
    "METRICS",
    "Cell",
    "Contestant",
    "GroundTruth",
    "Loaded",
    "MetricSettings",
    "Problem",
    "ProtocolSettings",
    "Record",
    "evaluate",
    "measure",
    "problem",
]
