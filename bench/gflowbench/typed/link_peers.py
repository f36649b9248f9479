"""Explainers of links, made by the name that they have in the registry."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gflowbench.explainers.foreign import PyGAlgorithm, import_explainer
from gflowbench.explainers.registry import link_function
from gflowbench.typed.link_explainers import LinkAnswers, LinkScores, pyg_algorithm
from gflowbench.typed.link_truth import LinkTruth
from gflowexplainer.errors import ConfigError


@dataclass(frozen=True)
class LinkPeer:
    """An explainer of links.

    Attributes:
        name: What it is called on the command line and in tables.
        function: Explains links: of a task, a seed and settings. Ties are broken by the seed.
        settings: Settings of the function.
    """

    name: str
    function: Callable[..., LinkAnswers | LinkScores]
    settings: dict[str, Any] = field(default_factory=dict)

    def explain(self, task: LinkTruth, seed: int) -> LinkAnswers:
        """Explains the links of a task. A function that fits something first tells the times of both itself."""
        begin = time.perf_counter()
        found = self.function(task, seed, **self.settings)
        if isinstance(found, LinkAnswers):
            return found
        return LinkAnswers(found, 0.0, (time.perf_counter() - begin) / task.test.size(1))


def create_link_peer(name: str, **settings: Any) -> LinkPeer:
    """Makes the explainer of links ``name``."""
    return LinkPeer(name, link_function(name), settings)


def import_link_peer(place: str, **settings: Any) -> LinkPeer:
    """Makes an explainer of links of the algorithm of PyG that lies at ``"module:attribute"``."""
    made = import_explainer(place)
    if not isinstance(made, PyGAlgorithm):
        raise ConfigError(f"{place!r} explains nodes and graphs, not links. Pass an ExplainerAlgorithm of PyG.")

    def explain(task: LinkTruth, seed: int) -> LinkScores:
        return pyg_algorithm(task, seed, made.algorithm())

    return LinkPeer(made.name, explain, settings)
