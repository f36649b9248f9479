"""Explainers from outside: a class of the user's with our protocol, or any algorithm of PyG, one instance at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import Explainer as PyGExplainer
from torch_geometric.explain import ExplainerAlgorithm

from gflowbench.explainers.interface import Explainer, Scores, Subject
from gflowbench.explainers.masked_model import MaskedModel, differentiable, parts, pyg_model_config
from gflowbench.explainers.registry import LinkPeer
from gflowexplainer.errors import ConfigError


class PyGAlgorithm:
    """Runs an algorithm of PyG on one instance after the other, with its own defaults.

    Args:
        name: What it is called in tables.
        algorithm: Makes a fresh algorithm.
    """

    def __init__(self, name: str, algorithm: Callable[[], ExplainerAlgorithm]) -> None:
        self.name = name
        self.algorithm = algorithm

    def fit(self, subject: Subject, seed: int) -> None:
        """Does nothing: such algorithms explain one instance at a time."""

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores edges, and nodes where the algorithm does."""
        nodes, edges = [], []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for part in parts(subject, 1):
                node, edge = self._explain_one(part)
                edges.append(edge)
                nodes.append(node)
        if all(edge is not None for edge in edges):
            scores = Scores.of_edges(subject.instances, torch.cat([edge for edge in edges if edge is not None]))
            return scores if any(n is None for n in nodes) else Scores(_joined(nodes), scores.edge)
        return Scores.of_nodes(subject.instances, _joined(nodes))

    def _explain_one(self, part: Subject) -> tuple[Tensor | None, Tensor | None]:
        graph = MaskedModel.of(part)
        graphs, inner = graph.graphs, part.instances
        with differentiable(part.predictor):
            explainer = PyGExplainer(
                part.model,
                self.algorithm(),
                explanation_type="model",
                node_mask_type="object",
                edge_mask_type="object",
                model_config=pyg_model_config(part.predictor),
            )
            index = int(graphs.center[0]) if part.predictor.level == "node" else None
            arguments = {name: value for name, value in graph.arguments.items() if name != "batch"}
            found = explainer(graphs.rows(), graphs.edge_index, index=index, **arguments)
        node, edge = found.get("node_mask"), found.get("edge_mask")
        place = torch.arange(inner.num_nodes) if inner.place_outside is None else inner.place_outside
        return (
            None if node is None else node.detach().double().view(graphs.num_nodes, -1).sum(dim=1)[place],
            None if edge is None else edge.detach().double()[graph.own],
        )


def import_explainer(place: str, *, links: bool = False, **settings: Any) -> Any:
    """Makes the explainer that lies at ``"module:attribute"``; the current folder is searched too.

    Args:
        place: A class or function that makes an object with ``fit`` and ``explain``, or an ``ExplainerAlgorithm``.
        links: Whether it is to explain links, as only an ``ExplainerAlgorithm`` can.
        **settings: What it is called with.
    """
    module, colon, attribute = place.partition(":")
    if not colon:
        raise ConfigError(f"Say where the explainer lies as 'module:attribute' (got {place!r}).")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        make = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"There is no explainer at {place!r}: {error}. Check the module and the name.") from error
    if isinstance(make, type) and issubclass(make, ExplainerAlgorithm):
        if links:
            from gflowbench.typed.link_explainers import pyg_algorithm

            return LinkPeer(attribute, pyg_algorithm, {"algorithm": make(**settings)})
        return PyGAlgorithm(attribute, lambda: make(**settings))
    if links:
        raise ConfigError(f"{place!r} explains nodes and graphs, not links. Pass an ExplainerAlgorithm of PyG.")
    made = make(**settings)
    if not isinstance(made, Explainer):
        raise ConfigError(
            f"{place!r} is no explainer: it needs a name, fit(subject, seed) and explain(subject, seed), or to be an "
            "ExplainerAlgorithm of PyG."
        )
    return made


def _joined(nodes: list[Tensor | None]) -> Tensor:
    return torch.cat([node for node in nodes if node is not None])
