"""Every table and figure of the paper, one file each: what it claims, what was measured, whether it holds."""

from gflowbench.paper.experiment import Drawing, Experiment, Outcome, Results, Scope, Verdict
from gflowbench.paper.experiments import experiment, names
from gflowbench.paper.run_experiment import run
from gflowbench.paper.steps import Contest, Measurement, record_of

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
