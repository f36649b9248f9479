"""Explainers by name. A new one is one line at the end of this file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gflowbench.explainers.interface import Explainer
from gflowexplainer.errors import ConfigError, one_of

Factory = Callable[..., Explainer]
GROUPS = ("floors", "ours", "peers")
"""Kinds of explainers: trivial ones; ours, whole and with a part changed; and other people's."""


@dataclass(frozen=True)
class _Entry:
    factory: Factory | str
    group: str
    architectures: tuple[str, ...]
    own_gnns: bool


_ENTRIES: dict[str, _Entry] = {}


def register(
    name: str,
    factory: Factory | str,
    *,
    group: str = "peers",
    architectures: tuple[str, ...] = (),
    own_gnns: bool = False,
) -> None:
    """Makes an explainer known.

    Args:
        name: What it is called on the command line and in tables.
        factory: Makes one from keyword settings, of which ``max_nodes`` must be one; or where to import that
            from when it is asked for, as ``"package.module:attribute"``.
        group: One of :data:`GROUPS`.
        architectures: What a GNN must be made of to be explained, of :data:`gflowbench.models.MODELS`; anything if
            empty.
        own_gnns: Whether it explains the GNNs of :mod:`gflowbench.models` only.
    """
    if name in (*GROUPS, "all"):
        raise ConfigError(f"No explainer can be called '{name}': the name stands for several. Choose another.")
    _ENTRIES[name] = _Entry(factory, one_of("group", group, GROUPS), architectures, own_gnns)


def names(group: str | None = None) -> tuple[str, ...]:
    """Names of all known explainers, or of those of one group, in order of registration."""
    return tuple(name for name, entry in _ENTRIES.items() if group is None or entry.group == group)


def named(words: Sequence[str]) -> list[str]:
    """Replaces ``all`` and the names of groups by the explainers they stand for; repeats are dropped."""
    found: list[str] = []
    for word in words:
        if word == "all" or word in GROUPS:
            found += names(None if word == "all" else word)
        else:
            found.append(one_of("explainer", word, (*names(), *GROUPS, "all")))
    return list(dict.fromkeys(found))


def misfit(name: str, architecture: str | None, *, own_gnn: bool = True) -> str:
    """Says why an explainer cannot explain a GNN; empty if it can, or if nothing is known.

    Args:
        name: The explainer.
        architecture: What the GNN is made of; ``None`` if that is not known.
        own_gnn: Whether it may be a GNN of :mod:`gflowbench.models`.
    """
    entry = _ENTRIES.get(name)
    if entry is not None and entry.own_gnns and not own_gnn:
        return "it explains the GNNs of gflowbench.models only, and this is another"
    if entry is None or architecture is None or not entry.architectures or architecture in entry.architectures:
        return ""
    return f"it explains {' and '.join(entry.architectures)} models only, and this is a {architecture}"


def module_of(name: str) -> str | None:
    """Returns the module that an explainer is made in; ``None`` if it is not registered."""
    entry = _ENTRIES.get(name)
    if entry is None:
        return None
    return entry.factory.partition(":")[0] if isinstance(entry.factory, str) else entry.factory.__module__


def create(name: str, **settings: Any) -> Explainer:
    """Makes the explainer ``name``; an unknown name is answered with the nearest right one."""
    factory = _ENTRIES[one_of("explainer", name, names())].factory
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(import_module(module), attribute)
    try:
        return factory(**settings)
    except TypeError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        raise ConfigError(f"Explainer '{name}' does not take these settings: {given} ({error}).") from error


register("random", "gflowbench.explainers.floors:RandomGrowth", group="floors")
register("distance", "gflowbench.explainers.floors:MinusDistance", group="floors")
register("probability", "gflowbench.explainers.floors:ClassProbability", group="floors")
register("breadth-first", "gflowbench.explainers.floors:BreadthFirst", group="floors")
register("degree", "gflowbench.explainers.floors:Degree", group="floors")
register("rarity", "gflowbench.explainers.floors:Rarity", group="floors")
register("everything", "gflowbench.explainers.floors:Everything", group="floors")
register("nothing", "gflowbench.explainers.floors:Nothing", group="floors")

FLOORS = names("floors")
"""The trivial explainers that belong in every table."""

register("gflow", "gflowbench.explainers.gflow:GFlow", group="ours")
register("gnnexplainer", "gflowbench.explainers.gnn_explainer:GNNExplainer")
register("pgexplainer", "gflowbench.explainers.pg_explainer:PGExplainer")
register("proxy-explainer", "gflowbench.explainers.proxy_explainer:ProxyExplainer")
register("attention", "gflowbench.explainers.attention:Attention", architectures=("gat",))
register("graphmask", "gflowbench.explainers.graph_mask:GraphMask", architectures=("gcn", "graphsage"))
register("saliency", "gflowbench.explainers.gradients:Saliency")
register("integrated-gradients", "gflowbench.explainers.gradients:IntegratedGradients")
register(
    "degree-decomposition",
    "gflowbench.explainers.degree_decomposition:DegreeDecomposition",
    architectures=("gcn",),
    own_gnns=True,
)
register("occlusion", "gflowbench.explainers.removal:Occlusion")
register("greedy", "gflowbench.explainers.removal:Greedy")
register("subgraphx", "gflowbench.explainers.subgraphx:SubgraphX")
register("rg-explainer", "gflowbench.explainers.rg_explainer:RGExplainer")
register("rg-explainer-no-pretraining", "gflowbench.explainers.rg_explainer:without_pretraining")
register("kernelshap", "gflowbench.explainers.kernel_shap:KernelShap")
register("gnnshap", "gflowbench.explainers.kernel_shap:GNNShap")
register("gstarx", "gflowbench.explainers.gstarx:GStarX")
register("eig-search", "gflowbench.explainers.eig_search:EiGSearch")
register("gflow-sequence", "gflowbench.explainers.presets:sequence", group="ours")
register("gflow-graph", "gflowbench.explainers.presets:graph", group="ours")
register("gflow-tb", "gflowbench.explainers.presets:trajectory_balance", group="ours")
register("gflow-ctb", "gflowbench.explainers.presets:conditional_trajectory_balance", group="ours")
register("gflow-paper", "gflowbench.explainers.presets:paper", group="ours")
