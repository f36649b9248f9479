"""Every table and figure of the paper, one file each: what it claims, what was measured, whether it holds."""

from gflowexplainer.experiments.experiment import Drawing, Experiment, Outcome, Results, Scope, Verdict
from gflowexplainer.experiments.registry import experiment, names
from gflowexplainer.experiments.running import run
from gflowexplainer.experiments.steps import Contest, Measurement, record_of

__all__ = [
    "Contest",
    "Drawing",
    "Experiment",
    "Measurement",
    "Outcome",
    "Results",
    "Scope",
    "Verdict",
    "experiment",
    "names",
    "record_of",
    "run",
]
