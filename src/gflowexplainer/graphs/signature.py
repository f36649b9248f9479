"""What a model's ``forward`` takes, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data


class Adapted(nn.Module):
    """A model behind another way to call it (:class:`~gflowexplainer.model.adapter.ModelAdapter`).

    Attributes:
        model: The model itself.
        call: A function of the user's that calls it on a ``Data``, if there is one.
    """

    model: nn.Module
    call: Callable[[Any, Data], Any] | None

    @property
    def takes(self) -> tuple[str, ...] | None:
        """Names of what it takes after features and edges; ``None`` if the model itself says that."""
        return None


_NOT_INPUT = ("x", "edge_index", "adj_t", "y", "batch", "batch_size", "ptr", "num_nodes")


def forward_parameters(model: nn.Module) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a model's ``forward``, also of one that was scripted or stands behind an adapter."""
    if isinstance(model, torch.jit.ScriptModule):
        arguments = model.forward.schema.arguments[1:] if hasattr(model.forward, "schema") else []
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        return {
            a.name: inspect.Parameter(a.name, kind, default=a.default_value if a.has_default_value() else empty)
            for a in arguments
        }
    if isinstance(model, Adapted) and model.takes is None and model.call is None:
        return forward_parameters(model.model)
    forward = model.forward
    function = getattr(forward, "__func__", None)
    if function is None or getattr(type(model), "forward", None) is not function:
        return dict(inspect.signature(forward).parameters)
    return dict(_parameters_after_self(function))


@lru_cache(maxsize=64)
def _parameters_after_self(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a method without the object that it is called on; the same for all of a class."""
    return dict(inspect.signature(function.__get__(object())).parameters)


def further_parameters(model: nn.Module) -> list[inspect.Parameter]:
    """Returns the parameters after features and edges that can be passed by name."""
    if not isinstance(model, nn.Module):
        return []
    parameters = list(forward_parameters(model).values())[2:]
    return [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def takes_everything(model: nn.Module) -> bool:
    """Whether a model is called by a function of the user's, which reads from the graph what it needs."""
    return isinstance(model, Adapted) and model.call is not None


def named_arguments(model: nn.Module) -> tuple[str, ...] | None:
    """Returns the names of what an adapter says that its model takes; ``None`` if the model itself says it."""
    return model.takes if isinstance(model, Adapted) else None


def argument_names(model: nn.Module, graph: Data) -> list[str]:
    """Names what a model takes of a graph after features and edges."""
    if takes_everything(model):
        return [name for name, value in graph.items() if _is_input(name, value, graph)]
    named = named_arguments(model)
    return [p.name for p in further_parameters(model)] if named is None else list(named)


def missing_arguments(model: nn.Module, given: Any) -> list[str]:
    """Names what a model must be given after features and edges, and is not."""
    if takes_everything(model) or named_arguments(model) is not None:
        return []
    known = {"batch", "edge_label_index", *given}
    return [p.name for p in further_parameters(model) if p.default is p.empty and p.name not in known]


def _is_input(name: str, value: Any, graph: Data) -> bool:
    """Whether an attribute of a graph may be meant for the model: it has one row a node or an edge."""
    if not isinstance(value, Tensor) or value.dim() == 0 or value.layout != torch.strided:
        return False
    if name in _NOT_INPUT or name.endswith("_mask"):
        return False
    return value.size(0) in (graph.num_nodes, graph.num_edges)
