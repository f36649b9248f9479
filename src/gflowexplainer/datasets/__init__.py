"""The paper's datasets, each with its ground truth, and any graphs of the user's own."""

from gflowexplainer.datasets import generators
from gflowexplainer.datasets.benchmark import Benchmark
from gflowexplainer.datasets.dataset_table import Statistics, side_by_side, statistics
from gflowexplainer.datasets.graph_sst2 import sentence_graphs
from gflowexplainer.datasets.loading import NAMES, load
from gflowexplainer.datasets.reference import reference_folder

__all__ = [
    "NAMES",
    "Benchmark",
    "Statistics",
    "generators",
    "load",
    "reference_folder",
    "sentence_graphs",
    "side_by_side",
    "statistics",
]
