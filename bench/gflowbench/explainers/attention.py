"""Attention: an edge scores as much as the explained model's own attention layers attend to it.

What PyG's ``AttentionExplainer`` does, for many instances in one call. Only models with attention layers (GAT and its
kin) can be explained that way; others are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import MaskedModel, at_edges, parts
from gflowbench.explainers.peer import Peer
from gflowexplainer.errors import ModelError, one_of


@dataclass(kw_only=True, eq=False)
class Attention(Peer):
    """Reads off the attention of every layer and head.

    Args:
        reduce: How heads, and then layers, become one number: ``"max"`` (PyG's default) or ``"mean"``.
    """

    name = "attention"
    deterministic = True

    reduce: str = "max"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("reduce", self.reduce, ("max", "mean"))

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores every edge by the attention it gets."""
        found = []
        with subject.predictor.evaluating():
            for part in parts(subject):
                graphs = MaskedModel.of(part)
                layers = [self._one_number(values) for values in _attend(graphs)]
                found.append(self._one_number(torch.stack(layers, dim=1))[graphs.own])
        return Scores.of_edges(subject.instances, torch.cat(found).double())

    def _one_number(self, values: Tensor) -> Tensor:
        values = values.flatten(1)
        return values.amax(dim=1) if self.reduce == "max" else values.mean(dim=1)


def _attend(graphs: MaskedModel) -> list[Tensor]:
    """Calls the model and gives the attention of each layer, shape ``[w, heads]`` each."""
    model = graphs.predictor.model
    seen: list[Tensor] = []

    def keep(layer: MessagePassing, inputs: Any, _output: Any) -> None:
        values = inputs[0].get("alpha")
        values = getattr(layer, "_alpha", None) if values is None else values
        if isinstance(values, Tensor):
            seen.append(at_edges(values.flatten(1), graphs.graphs, layer))

    handles = []
    try:
        for module in model.modules():
            if isinstance(module, MessagePassing):
                handles.append(module.register_message_forward_hook(keep))
        graphs()
    finally:
        for handle in handles:
            handle.remove()
    if not seen:
        raise ModelError(
            f"{type(model).__name__} has no attention layers, so 'attention' cannot explain it. "
            "Use a model with GATConv or the like, or another explainer."
        )
    return seen
