"""The explained model as a differentiable function of edge masks, for many instances in one call.

A mask multiplies the messages along the edges, in every layer alike, as PyG's own explainers do it: the graph and its
normalisation stay as they are. Masks of different instances do not meet in a disjoint union, so the gradient of a sum
of their losses is the gradient of each loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.explain.algorithm.utils import set_masks
from torch_geometric.nn import MessagePassing

from gflowbench.explainers.interface import Subject
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import segment_ids
from gflowexplainer.ops.sorting import find_sorted

GRADIENT_COST = 4
"""How many times the memory of a forward call a backward call takes, roughly."""


@contextmanager
def differentiable(predictor: Predictor) -> Iterator[nn.Module]:
    """Lets gradients through the model to what is put into it, for the length of a block.

    The model is in evaluation mode and its parameters need no gradient. It is handed back as it came, without masks.
    """
    with predictor.evaluating(), masks_alone(predictor.model), torch.enable_grad():
        yield predictor.model


@contextmanager
def masks_alone(model: nn.Module) -> Iterator[None]:
    """Differentiates with respect to masks alone for the length of a block; hands the model back as it came."""
    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, MessagePassing):
                stack.enter_context(_same_layer(module))
        for parameter in model.parameters():
            stack.callback(parameter.requires_grad_, parameter.requires_grad)
            parameter.requires_grad_(False)
        yield


@contextmanager
def _same_layer(layer: MessagePassing) -> Iterator[None]:
    """Restores all attributes of a layer, also those that a mask leaves behind."""
    explain, attributes, parameters = layer.explain, dict(vars(layer)), dict(layer._parameters)
    # PyG's GNNExplainer leaves the name of a parameter, after which no gradient reaches a mask that is set.
    layer._parameters.pop("_edge_mask", None)
    try:
        yield
    finally:
        layer.explain = explain
        vars(layer).clear()
        vars(layer).update(attributes)
        layer._parameters.clear()
        layer._parameters.update(parameters)


@dataclass(frozen=True)
class MaskedModel:
    """A disjoint union of ``I`` instances with what surrounds them, ``w`` edges in total, ``e`` of them their own.

    Attributes:
        predictor: The explained model.
        graphs: The instances with their surroundings, on which the model predicts as on the whole graph.
        target: What the model predicts.
        own: Position of each edge of the instances among all, shape ``[e]``.
        edge_owner: Instance of each edge, shape ``[w]``.
    """

    predictor: Predictor
    graphs: Instances
    target: Target
    own: Tensor
    edge_owner: Tensor

    @classmethod
    def of(cls, subject: Subject) -> MaskedModel:
        """Takes all instances of ``subject`` at once; see :func:`parts`."""
        inner = subject.instances
        graphs = inner.surroundings or inner
        edge_owner = segment_ids(graphs.edge_counts, graphs.edge_index.size(1))
        own = torch.arange(edge_owner.numel(), device=inner.device)
        if inner.surroundings is not None:
            # Within an instance edges are in the user's order, so these numbers ascend.
            width = int(graphs.edge_id.max()) + 1 if graphs.edge_id.numel() else 1
            owner = segment_ids(inner.edge_counts, inner.edge_index.size(1))
            own = find_sorted(edge_owner * width + graphs.edge_id, owner * width + inner.edge_id)[0]
        return cls(subject.predictor, graphs, subject.target, own, edge_owner)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the model takes beside ``x`` and ``edge_index``."""
        graphs = self.graphs
        given = graphs.node_arguments | graphs.edge_arguments | graphs.shared_arguments
        if self.predictor.level == "graph" and self.predictor.takes_batch:
            given |= {"batch": graphs.owner}
        return given

    def __call__(self, mask: Tensor | None = None, *, sigmoid: bool = True) -> Tensor:
        """Evaluates the model under a mask.

        Args:
            mask: Mask of each edge, shape ``[w]``; none leaves the masks alone that the layers have.
            sigmoid: Whether the mask holds logits.

        Returns:
            What the model returns of each instance, shape ``[I, C]``.
        """
        if mask is not None:
            set_masks(self.predictor.model, mask, self.graphs.edge_index, apply_sigmoid=sigmoid)
        return self.evaluate(self.graphs.edge_index)

    def without_edges(self, kept: Tensor) -> Tensor:
        """Evaluates the model on graphs that only have the edges ``kept`` ``[w]``, shape ``[I, C]``."""
        given = {name: value[kept] for name, value in self.graphs.edge_arguments.items()}
        return self.evaluate(self.graphs.edge_index[:, kept], **given)

    def evaluate(self, edge_index: Tensor, x: Tensor | None = None, **given: Any) -> Tensor:
        """Evaluates the model on the nodes with other edges, or other features.

        Args:
            edge_index: The edges.
            x: The features; those of the instances if not given.
            **given: Arguments that differ from :attr:`arguments`.

        Returns:
            What the model returns of each instance, shape ``[I, C]``.
        """
        graphs, predictor = self.graphs, self.predictor
        predictor.num_evaluations += len(graphs)
        output = predictor.model(graphs.rows() if x is None else x, edge_index, **(self.arguments | given))
        if predictor.level == "graph":
            return predictor.checked(output, len(graphs))
        return predictor.checked(output, graphs.num_nodes)[graphs.center]

    def losses(self, output: Tensor) -> Tensor:
        """Returns minus the log-likelihood of what each instance is to hold, shape ``[I]``."""
        label, predictor = self.target.label, self.predictor
        if label is not None and (predictor.mode, predictor.return_type) == ("multiclass_classification", "raw"):
            return nn.functional.cross_entropy(output, label, reduction="none")
        every = torch.arange(len(self.graphs), device=output.device)
        return -self.target.log_preservation(predictor.read(output), every)

    def uniform(self, *stream: int) -> Tensor:
        """Returns a random number in (0, 1) for each edge, shape ``[w]``, that no other instance changes."""
        return uniform(*stream, self.graphs.own_key[self.edge_owner], self.graphs.edge_id)


def parts(subject: Subject, size: int | None = None, *, times: float = 1.0) -> Iterator[Subject]:
    """Cuts a subject into some that fit the memory, in order.

    Args:
        subject: The subject.
        size: Number of instances of a part at most.
        times: How many times the usual memory is needed.
    """
    predictor, instances = subject.predictor, subject.instances
    if predictor.level == "graph" and not predictor.takes_batch:
        size = 1
    every = torch.arange(len(subject), device=instances.device)
    for chunk in predictor.chunks((times * GRADIENT_COST * predictor.cost(instances)).long()):
        for index in every[chunk].split(size or len(subject)):
            yield subject if index.numel() == len(subject) else subject.select(index)


def pyg_target(graph: MaskedModel) -> tuple[Tensor, Tensor | None]:
    """Words the targets of instances as PyG's algorithms want them: those of all nodes, and the explained ones."""
    wanted = graph.target.prediction if graph.target.label is None else graph.target.label
    if graph.predictor.level == "graph":
        return wanted, None
    center = graph.graphs.center
    everywhere = wanted.new_zeros(graph.graphs.num_nodes, *wanted.shape[1:])
    everywhere[center] = wanted
    return everywhere, center


def pyg_model_config(predictor: Predictor) -> dict[str, str]:
    """Words what is known of the model as PyG's algorithms want it."""
    return {"mode": predictor.mode, "task_level": predictor.level, "return_type": predictor.return_type}


def at_edges(values: Tensor, graphs: Instances, layer: MessagePassing) -> Tensor:
    """Brings what a layer has for each message into the order of the edges, shape ``[w, ...]``.

    A layer that adds self loops drops those of the graph and puts its own behind all other edges; in the result self
    loops then get 0.
    """
    if not getattr(layer, "add_self_loops", False):
        return values
    between = torch.nonzero(graphs.edge_index[0] != graphs.edge_index[1]).flatten()
    ordered = values.new_zeros(graphs.edge_index.size(1), *values.shape[1:])
    ordered[between] = values[: between.numel()]
    return ordered
