"""Explains predictions of graph neural networks by sampling connected subgraphs."""

from importlib import import_module
from typing import TYPE_CHECKING

from gflowexplainer.version import __version__

if TYPE_CHECKING:
    from gflowexplainer.catalogue.motif_catalogue import motifs
    from gflowexplainer.explainer import GFlowExplainer
    from gflowexplainer.explanation.explanation import SubgraphExplanation
    from gflowexplainer.explanation.explanation_list import ExplanationList
    from gflowexplainer.explanation.typed_explanation import TypedExplanation
    from gflowexplainer.model.adapter import adapt

__all__ = [
    "ExplanationList",
    "GFlowExplainer",
    "SubgraphExplanation",
    "TypedExplanation",
    "__version__",
    "adapt",
    "motifs",
]

_HOMES = {
    "ExplanationList": "gflowexplainer.explanation.explanation_list",
    "GFlowExplainer": "gflowexplainer.explainer",
    "SubgraphExplanation": "gflowexplainer.explanation.explanation",
    "TypedExplanation": "gflowexplainer.explanation.typed_explanation",
    "adapt": "gflowexplainer.model.adapter",
    "motifs": "gflowexplainer.catalogue.motif_catalogue",
}


def __getattr__(name: str) -> object:
    """Imports a public name, and with it torch, when it is first named."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gflowexplainer' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names what completion offers: the public names and the modules that users import from."""
    return sorted([*__all__, "bulk", "errors", "report", "sources", "testing"])
