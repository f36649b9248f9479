"""The research beside GFlowExplainer: the paper's data and GNNs, other explainers, metrics, and every experiment."""

from gflowbench.version import __version__

__all__ = ["__version__"]
