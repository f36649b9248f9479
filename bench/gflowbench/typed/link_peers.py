"""Explainers of links by name, in the groups and under the names that explainers of nodes and graphs have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gflowbench.explainers.foreign import PyGAlgorithm, import_explainer
from gflowbench.explainers.registry import GROUPS, names
from gflowbench.typed.link_explainers import (
    LinkAnswers,
    gnn_explainer,
    model_paths,
    ours,
    pyg_algorithm,
    shortest_ways,
)
from gflowbench.typed.link_floors import edges_near_ends, random_edges, rare_neighbours, rare_ways, rarest_way
from gflowbench.typed.link_gradients import gradient_x_input, integrated_gradients, saliency
from gflowbench.typed.link_pg_explainer import pg_explainer
from gflowbench.typed.link_removals import gnn_shap, occlusion
from gflowbench.typed.link_truth import LinkTruth
from gflowbench.typed.page_link import page_link
from gflowexplainer.errors import ConfigError, one_of


@dataclass(frozen=True)
class LinkPeer:
    """An explainer of links.

    Attributes:
        name: What it is called on the command line and in tables.
        function: Explains links: of a task, a seed and settings.
        group: One of :data:`gflowbench.explainers.registry.GROUPS`.
        deterministic: Whether every seed gives the same; ties are broken by the seed nevertheless.
        settings: Settings of the function.
    """

    name: str
    function: Callable[..., LinkAnswers]
    group: str = "peers"
    deterministic: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def explain(self, task: LinkTruth, seed: int) -> LinkAnswers:
        """Explains the links of a task."""
        return self.function(task, seed, **self.settings)


_PEERS = {
    peer.name: peer
    for peer in (
        LinkPeer("random", random_edges, "floors"),
        LinkPeer("distance", edges_near_ends, "floors"),
        LinkPeer("shortest-ways", shortest_ways, "floors"),
        LinkPeer("degree", rare_neighbours, "floors"),
        LinkPeer("rare-ways", rare_ways, "floors"),
        LinkPeer("rarest-way", rarest_way, "floors"),
        LinkPeer("gflow", ours, "ours"),
        LinkPeer("gnnexplainer", gnn_explainer),
        LinkPeer("saliency", saliency),
        LinkPeer("integrated-gradients", integrated_gradients),
        LinkPeer("gradient-x-input", gradient_x_input),
        LinkPeer("occlusion", occlusion),
        LinkPeer("gnnshap", gnn_shap),
        LinkPeer("pgexplainer", pg_explainer),
        LinkPeer("page-link", page_link),
        LinkPeer("paths-by-model", model_paths),
    )
}
FLOORS = tuple(peer.name for peer in _PEERS.values() if peer.group == "floors")
"""Explainers of links that know nothing of the model."""


def create_link_peer(name: str, **settings: Any) -> LinkPeer:
    """Makes the explainer of links ``name``; an unknown name is answered with the nearest right one."""
    peer = _PEERS[one_of("explainer of links", name, tuple(_PEERS))]
    return LinkPeer(peer.name, peer.function, peer.group, peer.deterministic, settings)


def import_link_peer(place: str, **settings: Any) -> LinkPeer:
    """Makes an explainer of links of the algorithm of PyG that lies at ``"module:attribute"``."""
    made = import_explainer(place)
    if not isinstance(made, PyGAlgorithm):
        raise ConfigError(f"{place!r} explains nodes and graphs, not links. Pass an ExplainerAlgorithm of PyG.")

    def explain(task: LinkTruth, seed: int) -> LinkAnswers:
        return pyg_algorithm(task, seed, made.algorithm())

    return LinkPeer(made.name, explain, settings=settings)


def link_peers_named(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Replaces ``all`` and the names of groups by the explainers of links they stand for.

    Returns:
        The explainers of links; and those of nodes and graphs that were meant too and explain no links.
    """
    found: list[str] = []
    for word in words:
        if word == "all" or word in GROUPS:
            group = None if word == "all" else word
            found += [name for name, peer in _PEERS.items() if group in (None, peer.group)]
            found += names(group)
        else:
            found.append(one_of("explainer", word, (*_PEERS, *names(), *GROUPS, "all")))
    found = list(dict.fromkeys(found))
    return [name for name in found if name in _PEERS], [name for name in found if name not in _PEERS]
