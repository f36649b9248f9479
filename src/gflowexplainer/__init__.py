"""Explains predictions of graph neural networks by sampling connected subgraphs."""

from gflowexplainer.version import __version__

__all__ = ["__version__"]
