"""GraphMask: gates that drop messages, layer by layer, as long as the prediction holds.

Schlichtkrull et al., *Interpreting Graph Neural Networks for NLP With Differentiable Edge Masking*, ICLR 2021. The
algorithm is PyG's, with repairs (:class:`_Gates`); it needs classes, and layers that know their numbers of channels and
pass one vector an edge (GCN, GraphSAGE). As in the paper the gates are shared: they are learned on many instances and
then explain any. ``shared=False`` learns them anew for every instance, which is how PyG's examples use it.

In the paper a learned vector stands in for a message behind a shut gate. Where all instances have one class, that
vector can carry the class by itself; then the gates of the most typical edges shut first, and the edges of a motif
score lowest. The benchmarks are such cases, so here a shut gate drops the message, unless ``learned_replacement`` is
set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import ExplainerConfig, GraphMaskExplainer, ModelConfig
from torch_geometric.nn import MessagePassing

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import (
    MaskedModel,
    at_edges,
    differentiable,
    parts,
    pyg_model_config,
    pyg_target,
)
from gflowbench.explainers.peer import Peer
from gflowexplainer.errors import ConfigError, ModelError


@dataclass(kw_only=True, eq=False)
class GraphMask(Peer):
    """Learns gates for the messages of each layer.

    Args:
        epochs: Updates for each layer.
        learning_rate: Of Adam.
        penalty: Weight of the share of open gates, at most 10.
        allowance: How much worse the likelihood of the class may become before it counts.
        learned_replacement: Whether a learned vector stands in for a message behind a shut gate.
        shared: Whether the gates are learned once, on the instances fitted on (as many as fit the memory budget), or
            anew for every instance explained.
    """

    name = "graphmask"
    positive = ("epochs", "learning_rate")

    epochs: int = 60
    learning_rate: float = 0.01
    penalty: float = 5.0
    allowance: float = 0.03
    learned_replacement: bool = False
    shared: bool = True
    _gates: _Gates | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in (("allowance", 1), ("penalty", 10)):
            if not 0 <= getattr(self, name) <= most:
                raise ConfigError(f"'{name}' must lie in [0, {most}] (got {getattr(self, name)}).")

    def fit(self, subject: Subject, seed: int) -> None:
        """Learns the gates, if they are shared."""
        if self.shared:
            with differentiable(subject.predictor):
                self._gates = self._learn(next(iter(parts(subject))), seed)

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores an edge by the mean of its gates over the layers."""
        if self.shared and self._gates is None:
            raise ConfigError("This explainer has not been fitted. Call fit first.")
        found = []
        with differentiable(subject.predictor):
            for part in parts(subject, 1):
                gates = self._gates or self._learn(part, seed)
                graphs = MaskedModel.of(part)
                found.append(gates.read(graphs)[graphs.own])
        return Scores.of_edges(subject.instances, torch.cat(found).double())

    def _learn(self, subject: Subject, seed: int) -> _Gates:
        graphs = MaskedModel.of(subject)
        predictor, model = graphs.predictor, graphs.predictor.model
        layers = _layers(graphs)
        torch.manual_seed(seed)
        gates = _Gates(len(layers), self.epochs, self.learning_rate, self.penalty, allowance=self.allowance, log=False)
        gates.learned_replacement = self.learned_replacement
        config = ExplainerConfig(explanation_type="model", node_mask_type="common_attributes", edge_mask_type="object")
        gates.connect(config, ModelConfig(**pyg_model_config(predictor)))
        target, index = pyg_target(graphs)
        try:
            gates.measure(graphs)
            gates._train_explainer(
                model, graphs.graphs.rows(), graphs.graphs.edge_index, target=target, index=index, **graphs.arguments
            )
        except (RuntimeError, AttributeError, TypeError) as error:
            raise ModelError(
                f"PyG's GraphMask cannot explain {type(model).__name__} with layers "
                f"{', '.join(sorted({type(layer).__name__ for layer in layers}))}: {type(error).__name__}: {error}"
            ) from error
        return gates


class _Gates(GraphMaskExplainer):
    """PyG's algorithm, put right in six places where it could not learn or rank.

    - PyG sizes the gates by the channels of a layer, not by what they see, and makes them anew, never to be trained,
      when a layer's two numbers of channels differ. Here they have the right size from the start.
    - Features are not masked: PyG's mask of them stays at its random beginning, which halves them.
    - An open gate lets a message through as it is. PyG's gives it another scale first, so that the model predicts
      something else even with all gates open.
    - The Lagrange multiplier of the constraint goes on from update to update; PyG's begins anew with each.
    - What replaces a message behind a shut gate is nothing, or a vector as in the paper, not one number.
    - The result is how open a gate is. PyG rounds it to open or shut, which leaves most edges equal.
    """

    learned_replacement = False
    _multiplier: Tensor | None = None

    @property
    def lambda_op(self) -> Tensor:
        """The Lagrange multiplier, before softplus."""
        assert self._multiplier is not None
        return self._multiplier

    @lambda_op.setter
    def lambda_op(self, value: Tensor) -> None:
        if self._multiplier is None:
            self._multiplier = value

    def measure(self, graphs: MaskedModel) -> None:
        """Finds out what the gates of each layer will see."""
        self._set_flags(graphs.predictor.model)
        layers = _layers(graphs)
        with torch.no_grad():
            graphs()
        self.ends = [layer.latest_source_embeddings.size(-1) for layer in layers]
        self.messages = [layer.latest_messages.size(-1) for layer in layers]

    def _set_masks(self, i_dim: list[int], j_dim: list[int], h_dim: list[int], x: Tensor) -> None:
        super()._set_masks(self.ends, self.messages, self.messages, x)
        self.node_feat_mask.data.fill_(torch.inf)
        rows = [torch.zeros(width, device=x.device) for width in self.messages]
        if self.learned_replacement:
            rows = [row.uniform_(-1, 1) / row.numel() ** 0.5 for row in rows]
        self.baselines = torch.nn.ParameterList([torch.nn.Parameter(row, requires_grad=False) for row in rows])

    def _enable_layer(self, layer: int) -> None:
        super()._enable_layer(layer)
        self.baselines[layer].requires_grad_(self.learned_replacement)

    def _set_flags(self, model: torch.nn.Module) -> None:
        for layer in model.modules():
            if isinstance(layer, MessagePassing):
                layer.explain_message = explain_message.__get__(layer, MessagePassing)
                layer.explain = True

    def _hard_concrete(self, input_element: Tensor, *args: Any, training: bool = True, **settings: Any) -> Any:
        if training:
            return super()._hard_concrete(input_element, *args, training=True, **settings)
        return torch.sigmoid(input_element), None

    def _loss(self, y_hat: Tensor, y: Tensor, penalty: Tensor) -> Tensor:
        fit = self._loss_multiclass_classification(y_hat, y)
        weight = torch.nn.functional.softplus(self.lambda_op)
        return self.penalty_scaling * penalty + weight * torch.relu(fit - self.allowance)

    def read(self, graphs: MaskedModel) -> Tensor:
        """Returns the mean gate of each edge over the layers, shape ``[w]``."""
        model = graphs.predictor.model
        self._set_flags(model)
        with torch.no_grad():
            graphs()
            return at_edges(self._explain(model), graphs.graphs, _layers(graphs)[0])


def explain_message(layer: MessagePassing, inputs: Tensor, x_i: Tensor, x_j: Tensor) -> Tensor:
    """Mixes messages ``[w, H]`` with what replaces them, as far as their gates are shut, and remembers them.

    PyG finds out by its name and the names of its arguments what to hand to it.
    """
    layer.latest_messages, layer.latest_source_embeddings, layer.latest_target_embeddings = inputs, x_j, x_i
    gate = getattr(layer, "message_scale", None)
    if gate is None:
        return inputs
    return gate[:, None] * inputs + (1 - gate)[:, None] * layer.message_replacement


def _layers(graphs: MaskedModel) -> list[MessagePassing]:
    model = graphs.predictor.model
    layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
    for layer in layers:
        if not isinstance(getattr(layer, "in_channels", None), int):
            raise ModelError(
                f"PyG's GraphMask needs layers that know their number of channels, and {type(layer).__name__} does "
                "not. Use a model with GCNConv or SAGEConv, or another explainer."
            )
        if getattr(layer, "heads", 1) > 1:
            raise ModelError(
                f"PyG's GraphMask has one gate an edge, and {type(layer).__name__} sends {layer.heads} messages along "
                "each. Use a model with GCNConv or SAGEConv, or another explainer."
            )
    return layers
