"""The paper's datasets, each with its ground truth, and any graphs of the user's own."""

from gflowbench.datasets import generators
from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.graph_sst2 import sentence_graphs
from gflowbench.datasets.loading import NAMES, load
from gflowbench.datasets.reference import reference_folder
from gflowbench.datasets.statistics import Statistics, statistics

__all__ = [
    "NAMES",
    "Benchmark",
    "Statistics",
    "generators",
    "load",
    "reference_folder",
    "sentence_graphs",
    "statistics",
]
