"""Explainers by name. A new one is one line at the end of this file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gflowexplainer.baselines.interface import Explainer
from gflowexplainer.errors import ConfigError, one_of

Factory = Callable[..., Explainer]
_FACTORIES: dict[str, Factory | str] = {}


def register(name: str, factory: Factory | str) -> None:
    """Makes an explainer known.

    Args:
        name: What it is called on the command line and in tables.
        factory: Makes one from keyword settings, of which ``max_nodes`` must be one; or where to import that
            from when it is asked for, as ``"package.module:attribute"``.
    """
    _FACTORIES[name] = factory


def names() -> tuple[str, ...]:
    """Names of all known explainers, in order of registration."""
    return tuple(_FACTORIES)


def create(name: str, **settings: Any) -> Explainer:
    """Makes the explainer ``name``; an unknown name is answered with the nearest right one."""
    factory = _FACTORIES[one_of("explainer", name, names())]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(import_module(module), attribute)
    try:
        return factory(**settings)
    except TypeError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        raise ConfigError(f"Explainer '{name}' does not take these settings: {given} ({error}).") from error


register("random", "gflowexplainer.baselines.floors:RandomGrowth")
register("distance", "gflowexplainer.baselines.floors:MinusDistance")
register("probability", "gflowexplainer.baselines.floors:ClassProbability")
register("breadth-first", "gflowexplainer.baselines.floors:BreadthFirst")
register("degree", "gflowexplainer.baselines.floors:Degree")
register("all", "gflowexplainer.baselines.floors:Everything")
register("nothing", "gflowexplainer.baselines.floors:Nothing")

FLOORS = names()
"""The trivial explainers that belong in every table."""

register("gflow", "gflowexplainer.baselines.gflow:GFlow")
register("gnnexplainer", "gflowexplainer.baselines.gnn_explainer:GNNExplainer")
register("pgexplainer", "gflowexplainer.baselines.pg_explainer:PGExplainer")
register("attention", "gflowexplainer.baselines.attention:Attention")
register("graphmask", "gflowexplainer.baselines.graph_mask:GraphMask")
register("saliency", "gflowexplainer.baselines.gradients:Saliency")
register("integrated-gradients", "gflowexplainer.baselines.gradients:IntegratedGradients")
register("beam", "gflowexplainer.baselines.beam:Beam")
register("exact", "gflowexplainer.baselines.exact:Exact")
register("gflow-sequence", "gflowexplainer.baselines.presets:sequence")
register("gflow-graph", "gflowexplainer.baselines.presets:graph")
register("gflow-tb", "gflowexplainer.baselines.presets:trajectory_balance")
register("gflow-ctb", "gflowexplainer.baselines.presets:conditional_trajectory_balance")
register("gflow-paper", "gflowexplainer.baselines.presets:paper")
register("degree-decomposition", "gflowexplainer.baselines.degree_decomposition:DegreeDecomposition")
register("subgraphx", "gflowexplainer.baselines.subgraphx:SubgraphX")
register("rg-explainer", "gflowexplainer.baselines.rg_explainer:RGExplainer")
register("rg-explainer-no-pretraining", "gflowexplainer.baselines.rg_explainer:without_pretraining")
