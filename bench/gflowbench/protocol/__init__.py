"""The protocol by which every explainer is judged: problems, explainers and seeds, cell by cell."""

from gflowbench.protocol.cells import Contestant, ProtocolSettings
from gflowbench.protocol.evaluation import evaluate
from gflowbench.protocol.problems import Loaded, Problem, problem
from gflowbench.protocol.record import Cell, Record

__all__ = ["Cell", "Contestant", "Loaded", "Problem", "ProtocolSettings", "Record", "evaluate", "problem"]
