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
    factory: Factory | str | None
    links: str | None
    group: str
    architectures: tuple[str, ...]
    own_gnns: bool


_ENTRIES: dict[str, _Entry] = {}


def register(
    name: str,
    factory: Factory | str | None,
    *,
    links: str | None = None,
    group: str = "peers",
    architectures: tuple[str, ...] = (),
    own_gnns: bool = False,
) -> None:
    """Makes an explainer known.

    Args:
        name: What it is called on the command line and in tables.
        factory: Makes one from keyword settings, of which ``max_nodes`` must be one; or where to import that
            from when it is asked for, as ``"package.module:attribute"``; ``None`` if it explains links only.
        links: Where to import the function from that explains links, in the same form; ``None`` if it explains none.
        group: One of :data:`GROUPS`.
        architectures: What a GNN must be made of to be explained, of :data:`gflowbench.models.MODELS`; anything if
            empty.
        own_gnns: Whether it explains the GNNs of :mod:`gflowbench.models` only.
    """
    if name in (*GROUPS, "all"):
        raise ConfigError(f"No explainer can be called '{name}': the name stands for several. Choose another.")
    _ENTRIES[name] = _Entry(factory, links, one_of("group", group, GROUPS), architectures, own_gnns)


def names(group: str | None = None, *, links: bool = False) -> tuple[str, ...]:
    """Names of all known explainers, or of those of one group, in order of registration.

    Args:
        group: One of :data:`GROUPS`; all if not given.
        links: Whether those of links are meant, instead of those of nodes and graphs.
    """
    return tuple(
        name
        for name, entry in _ENTRIES.items()
        if group in (None, entry.group) and (entry.links if links else entry.factory) is not None
    )


def named(words: Sequence[str]) -> list[str]:
    """Replaces ``all`` and the names of groups by the explainers they stand for; repeats are dropped."""
    found: list[str] = []
    for word in words:
        if word == "all" or word in GROUPS:
            found += names(None if word == "all" else word)
        else:
            found.append(one_of("explainer", word, (*names(), *GROUPS, "all")))
    return list(dict.fromkeys(found))


def named_of_links(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Replaces ``all`` and the names of groups by the explainers of links they stand for.

    Returns:
        The explainers of links; and those of nodes and graphs that were meant too and explain no links.
    """
    found: list[str] = []
    for word in words:
        if word == "all" or word in GROUPS:
            group = None if word == "all" else word
            found += [*names(group, links=True), *names(group)]
        else:
            found.append(one_of("explainer", word, (*_ENTRIES, *GROUPS, "all")))
    of_links = names(links=True)
    found = list(dict.fromkeys(found))
    return [name for name in found if name in of_links], [name for name in found if name not in of_links]


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
    if isinstance(entry.factory, str):
        return entry.factory.partition(":")[0]
    return getattr(entry.factory, "__module__", None)


def create(name: str, **settings: Any) -> Explainer:
    """Makes the explainer ``name``; an unknown name is answered with the nearest right one."""
    entry = _ENTRIES[one_of("explainer", name, names())]
    factory = _imported(entry.factory) if isinstance(entry.factory, str) else entry.factory
    assert factory is not None
    try:
        return factory(**settings)
    except TypeError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        raise ConfigError(f"Explainer '{name}' does not take these settings: {given} ({error}).") from error


def link_function(name: str) -> Callable[..., Any]:
    """Imports the function that explains links; an unknown name is answered with the nearest right one."""
    place = _ENTRIES[one_of("explainer of links", name, names(links=True))].links
    assert place is not None
    return _imported(place)


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


register(
    "random",
    "gflowbench.explainers.floors:RandomGrowth",
    links="gflowbench.typed.link_floors:random_edges",
    group="floors",
)
register(
    "distance",
    "gflowbench.explainers.floors:MinusDistance",
    links="gflowbench.typed.link_floors:edges_near_ends",
    group="floors",
)
register("probability", "gflowbench.explainers.floors:ClassProbability", group="floors")
register("breadth-first", "gflowbench.explainers.floors:BreadthFirst", group="floors")
register(
    "degree",
    "gflowbench.explainers.floors:Degree",
    links="gflowbench.typed.link_floors:rare_neighbours",
    group="floors",
)
register("rarity", "gflowbench.explainers.floors:Rarity", group="floors")
register("everything", "gflowbench.explainers.floors:Everything", group="floors")
register("nothing", "gflowbench.explainers.floors:Nothing", group="floors")

FLOORS = names("floors")
"""The trivial explainers that belong in every table."""

register("gflow", "gflowbench.explainers.gflow:GFlow", links="gflowbench.typed.link_explainers:ours", group="ours")
register(
    "gnnexplainer",
    "gflowbench.explainers.gnn_explainer:GNNExplainer",
    links="gflowbench.typed.link_explainers:gnn_explainer",
)
register(
    "pgexplainer",
    "gflowbench.explainers.pg_explainer:PGExplainer",
    links="gflowbench.typed.link_pg_explainer:pg_explainer",
)
register("proxy-explainer", "gflowbench.explainers.proxy_explainer:ProxyExplainer")
register("attention", "gflowbench.explainers.attention:Attention", architectures=("gat",))
register("graphmask", "gflowbench.explainers.graph_mask:GraphMask", architectures=("gcn", "graphsage"))
register("saliency", "gflowbench.explainers.gradients:Saliency", links="gflowbench.typed.link_gradients:saliency")
register(
    "integrated-gradients",
    "gflowbench.explainers.gradients:IntegratedGradients",
    links="gflowbench.typed.link_gradients:integrated_gradients",
)
register(
    "degree-decomposition",
    "gflowbench.explainers.degree_decomposition:DegreeDecomposition",
    architectures=("gcn",),
    own_gnns=True,
)
register("occlusion", "gflowbench.explainers.removal:Occlusion", links="gflowbench.typed.link_removals:occlusion")
register("greedy", "gflowbench.explainers.removal:Greedy")
register("subgraphx", "gflowbench.explainers.subgraphx:SubgraphX")
register("rg-explainer", "gflowbench.explainers.rg_explainer:RGExplainer")
register("rg-explainer-no-pretraining", "gflowbench.explainers.rg_explainer:WithoutPretraining")
register("kernelshap", "gflowbench.explainers.kernel_shap:KernelShap")
register("gnnshap", "gflowbench.explainers.kernel_shap:GNNShap", links="gflowbench.typed.link_removals:gnn_shap")
register("gstarx", "gflowbench.explainers.gstarx:GStarX")
register("eig-search", "gflowbench.explainers.eig_search:EiGSearch")
register("gflow-context", "gflowbench.explainers.presets:context", group="ours")
register("gflow-sequence", "gflowbench.explainers.presets:sequence", group="ours")
register("gflow-graph", "gflowbench.explainers.presets:graph", group="ours")
register("gflow-tb", "gflowbench.explainers.presets:trajectory_balance", group="ours")
register("gflow-ctb", "gflowbench.explainers.presets:conditional_trajectory_balance", group="ours")
register("gflow-paper", "gflowbench.explainers.presets:paper", group="ours")
register("shortest-ways", None, links="gflowbench.typed.link_explainers:shortest_ways", group="floors")
register("rare-ways", None, links="gflowbench.typed.link_floors:rare_ways", group="floors")
register("rarest-way", None, links="gflowbench.typed.link_floors:rarest_way", group="floors")
register("gradient-x-input", None, links="gflowbench.typed.link_gradients:gradient_x_input")
register("page-link", None, links="gflowbench.typed.page_link:page_link")
register("paths-by-model", None, links="gflowbench.typed.link_explainers:model_paths")
