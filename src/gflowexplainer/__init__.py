"""Explains predictions of graph neural networks by sampling connected subgraphs."""

from typing import TYPE_CHECKING

from gflowexplainer.version import __version__

if TYPE_CHECKING:
    from gflowexplainer.explainer import GFlowExplainer
    from gflowexplainer.explanation.explanation import SubgraphExplanation

__all__ = ["GFlowExplainer", "SubgraphExplanation", "__version__"]


def __getattr__(name: str) -> object:
    """Imports the two classes, and with them torch, when they are first named."""
    if name == "GFlowExplainer":
        from gflowexplainer.explainer import GFlowExplainer

        return GFlowExplainer
    if name == "SubgraphExplanation":
        from gflowexplainer.explanation.explanation import SubgraphExplanation

        return SubgraphExplanation
    raise AttributeError(f"module 'gflowexplainer' has no attribute {name!r}")
