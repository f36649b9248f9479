"""Explainers by name. A new one is one line at the end of this file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any

from gflowexplainer.errors import ConfigError, one_of

Factory = Callable[..., Any]
GROUPS = ("floors", "ours", "peers")
"""Kinds of explainers: trivial ones; ours, whole and with a part changed; and other people's."""
NO_LINKS, ONLY_LINKS = "it explains nodes and graphs, not links", "it explains links only"


@dataclass(frozen=True)
class _Entry:
    factory: Factory | str | None
    links: str | None
    group: str
    architectures: tuple[str, ...]
    own_gnns: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    def place(self, links: bool) -> Factory | str | None:
        return self.links if links else self.factory


_ENTRIES: dict[str, _Entry] = {}


def register(
    name: str,
    factory: Factory | str | None,
    *,
    links: str | None = None,
    group: str = "peers",
    architectures: tuple[str, ...] = (),
    own_gnns: bool = False,
    **settings: Any,
) -> None:
    """Makes an explainer known.

    Args:
        name: What it is called on the command line and in tables.
        factory: Makes one from keyword settings, of which ``max_nodes`` must be one; or where to import that
            from when it is made, as ``"package.module:attribute"``; ``None`` if it explains links only.
        links: Where to import from what explains links: an explainer, or a function of a task, a seed and settings
            that returns the scores of edges; ``None`` if it explains none.
        group: One of :data:`GROUPS`.
        architectures: What a GNN must be made of to be explained, of :data:`gflowbench.models.MODELS`; anything if
            empty.
        own_gnns: Whether it explains the GNNs of :mod:`gflowbench.models` only.
        **settings: Settings that it always has.
    """
    if name in (*GROUPS, "all"):
        raise ConfigError(f"No explainer can be called '{name}': the name stands for several. Choose another.")
    _ENTRIES[name] = _Entry(factory, links, one_of("group", group, GROUPS), architectures, own_gnns, settings)


def names(group: str | None = None, *, links: bool = False) -> tuple[str, ...]:
    """Names of all known explainers, or of those of one group, in order of registration.

    Args:
        group: One of :data:`GROUPS`; all if not given.
        links: Whether those of links are meant, instead of those of nodes and graphs.
    """
    return tuple(
        name for name, entry in _ENTRIES.items() if group in (None, entry.group) and entry.place(links) is not None
    )


def named(words: Sequence[str], *, links: bool = False) -> list[str]:
    """Replaces ``all`` and the names of groups by the explainers they stand for; repeats are dropped.

    With ``links`` these are the explainers of links; others may be named one by one, and are left out where they run.
    """
    found: list[str] = []
    for word in words:
        if word == "all" or word in GROUPS:
            found += names(None if word == "all" else word, links=links)
        else:
            found.append(one_of("explainer", word, (*(_ENTRIES if links else names()), *GROUPS, "all")))
    return list(dict.fromkeys(found))


def misfit(name: str, architecture: str | None, *, own_gnn: bool = True, links: bool = False) -> str:
    """Says why an explainer cannot explain a GNN; empty if it can, or if nothing is known.

    Args:
        name: The explainer.
        architecture: What the GNN is made of; ``None`` if that is not known.
        own_gnn: Whether it may be a GNN of :mod:`gflowbench.models`.
        links: Whether links are to be explained.
    """
    entry = _ENTRIES.get(name)
    if entry is None:
        return ""
    if entry.place(links) is None:
        return NO_LINKS if links else ONLY_LINKS
    if entry.own_gnns and not own_gnn:
        return "it explains the GNNs of gflowbench.models only, and this is another"
    if architecture is None or not entry.architectures or architecture in entry.architectures:
        return ""
    return f"it explains {' and '.join(entry.architectures)} models only, and this is a {architecture}"


def module_of(name: str, *, links: bool = False) -> str | None:
    """Returns the module that an explainer, of links or not, is made in; ``None`` if it is not registered."""
    place = _ENTRIES[name].place(links) if name in _ENTRIES else None
    return place.partition(":")[0] if isinstance(place, str) else getattr(place, "__module__", None)


def create(name: str, *, links: bool = False, **settings: Any) -> Any:
    """Makes the explainer ``name``, of links or not; an unknown name is answered with the nearest right one."""
    kind = "explainer of links" if links else "explainer"
    entry = _ENTRIES[one_of(kind, name, names(links=links))]
    factory = entry.place(links)
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(import_module(module), attribute)
    assert factory is not None
    try:
        if links and not isinstance(factory, type):
            return LinkPeer(name, factory, settings)
        made = factory(**entry.settings, **settings)
    except TypeError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        raise ConfigError(f"Explainer '{name}' does not take these settings: {given} ({error}).") from error
    if entry.settings:
        made.name = name
    return made


class LinkPeer:
    """A function that scores the edges around links, as an explainer.

    Args:
        name: What it is called.
        function: Takes a :class:`~gflowbench.typed.link_task.LinkTask`, a seed and settings.
        settings: The settings.
    """

    def __init__(self, name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        signature(function).bind(None, 0, **settings)
        self.name, self.function, self.settings = name, function, settings

    def fit(self, task: Any, seed: int) -> None:
        """Does nothing: every link is explained by itself."""

    def explain(self, task: Any, seed: int) -> Any:
        """Scores the edges around the links to explain."""
        return self.function(task, seed, **self.settings)


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

register("gflow", "gflowbench.explainers.gflow:GFlow", links="gflowbench.typed.link_explainers:LinkGFlow", group="ours")
register(
    "gnnexplainer",
    "gflowbench.explainers.gnn_explainer:GNNExplainer",
    links="gflowbench.typed.link_explainers:gnn_explainer",
)
register(
    "pgexplainer",
    "gflowbench.explainers.pg_explainer:PGExplainer",
    links="gflowbench.typed.link_pg_explainer:LinkPGExplainer",
)
register("proxy-explainer", "gflowbench.explainers.proxy_explainer:ProxyExplainer")
register("attention", "gflowbench.explainers.attention:Attention", architectures=("gat",))
register("graphmask", "gflowbench.explainers.graph_mask:GraphMask", architectures=("gcn", "graphsage"))
register("saliency", "gflowbench.explainers.gradients:Saliency", links="gflowbench.typed.link_attributions:saliency")
register(
    "integrated-gradients",
    "gflowbench.explainers.gradients:IntegratedGradients",
    links="gflowbench.typed.link_attributions:integrated_gradients",
)
register(
    "degree-decomposition",
    "gflowbench.explainers.degree_decomposition:DegreeDecomposition",
    architectures=("gcn",),
    own_gnns=True,
)
register("occlusion", "gflowbench.explainers.removal:Occlusion", links="gflowbench.typed.link_attributions:occlusion")
register("greedy", "gflowbench.explainers.removal:Greedy")
register("subgraphx", "gflowbench.explainers.subgraphx:SubgraphX")
register("rg-explainer", "gflowbench.explainers.rg_explainer:RGExplainer")
register("rg-explainer-no-pretraining", "gflowbench.explainers.rg_explainer:WithoutPretraining")
register("kernelshap", "gflowbench.explainers.kernel_shap:KernelShap")
register("gnnshap", "gflowbench.explainers.kernel_shap:GNNShap", links="gflowbench.typed.link_attributions:gnn_shap")
register("gstarx", "gflowbench.explainers.gstarx:GStarX")
register("eig-search", "gflowbench.explainers.eig_search:EiGSearch")
for _preset in ("context", "sequence", "graph"):
    register(f"gflow-{_preset}", "gflowbench.explainers.gflow:GFlow", group="ours", preset=_preset)
register(
    "gflow-tb", "gflowbench.explainers.gflow:GFlow", group="ours", preset="context", objective="trajectory_balance"
)
register(
    "gflow-ctb",
    "gflowbench.explainers.gflow:GFlow",
    group="ours",
    preset="context",
    objective="conditional_trajectory_balance",
)
register("gflow-paper", "gflowbench.explainers.gflow:GFlow", group="ours", preset="paper")
register("shortest-ways", None, links="gflowbench.typed.link_floors:shortest_ways", group="floors")
register("rare-ways", None, links="gflowbench.typed.link_floors:rare_ways", group="floors")
register("rarest-way", None, links="gflowbench.typed.link_floors:rarest_way", group="floors")
register("gradient-x-input", None, links="gflowbench.typed.link_attributions:gradient_x_input")
register("page-link", None, links="gflowbench.typed.page_link:page_link")
register("paths-by-model", None, links="gflowbench.typed.link_explainers:model_paths")
