"""How far information travels in a model: its message-passing steps, counted."""

from __future__ import annotations

from typing import Any

import torch
import torch_geometric.nn.conv
from torch import nn
from torch_geometric.nn import (
    APPNP,
    ARMAConv,
    ChebConv,
    GatedGraphConv,
    MessagePassing,
    MixHopConv,
    SGConv,
    SSGConv,
    TAGConv,
)

from gflowexplainer.errors import ConfigError, ModelError


def find_hops(model: nn.Module) -> int:
    """Counts the message-passing steps of ``model``: how far information travels to a node; 0 if none are known.

    A layer that is called several times in one forward call is counted once;
    :func:`~gflowexplainer.model.locality.find_locality` sees how often it is. Layers of different relations that stand
    beside each other, as in ``HeteroConv`` and ``to_hetero``, are one step together.
    """
    return _count(model, set())


def refuse_none(hops: int, model: nn.Module) -> int:
    """Returns the counted ``hops`` of a model, or says that none were found."""
    if hops == 0:
        raise ConfigError(
            f"No torch_geometric MessagePassing layer was found in {type(model).__name__}, so the size of its "
            "computation graphs is unknown. Pass 'num_hops'."
        )
    return hops


def _count(module: nn.Module, seen: set[int]) -> int:
    """Counts the steps of a module and of all inside it, each once."""
    if id(module) in seen:
        return 0
    seen.add(id(module))
    inside = [_count(child, seen) for child in module.children()]
    own = _steps(module) if isinstance(module, MessagePassing) else int(_was_layer(module))
    beside = isinstance(module, nn.ModuleDict) and all(_is_relation(name) for name in module.keys())  # noqa: SIM118
    return own + (max(inside, default=0) if beside else sum(inside))


def _was_layer(module: nn.Module) -> bool:
    """Whether a module is a message-passing layer of PyG that was scripted or traced."""
    if not isinstance(module, torch.jit.ScriptModule):
        return False
    made_of = getattr(torch_geometric.nn.conv, str(getattr(module, "original_name", "")), None)
    return isinstance(made_of, type) and issubclass(made_of, MessagePassing)


def _is_relation(name: object) -> bool:
    """Whether a name of a module stands for a relation, as ``HeteroConv`` and ``to_hetero`` write them."""
    return (isinstance(name, tuple) and len(name) == 3) or (isinstance(name, str) and name.count("__") >= 2)


def _steps(layer: MessagePassing) -> int:
    """Counts the steps that information travels in one call of ``layer``."""
    if isinstance(layer, APPNP | SGConv | SSGConv | TAGConv):
        return layer.K
    if isinstance(layer, ARMAConv | GatedGraphConv):
        return layer.num_layers
    if isinstance(layer, ChebConv):
        return len(layer.lins) - 1
    if isinstance(layer, MixHopConv):
        return max(layer.powers)
    return 1


def check_hops(num_hops: Any) -> None:
    """Refuses a number of hops that is none."""
    if num_hops is None:
        return
    if not isinstance(num_hops, int) or isinstance(num_hops, bool) or num_hops < 0:
        raise ConfigError(f"'num_hops' must be a whole number that is not negative (got {num_hops!r}).")


def refuse_lazy(model: nn.Module) -> None:
    """Refuses a model whose weights do not exist yet."""
    tensors = (*model.named_parameters(), *model.named_buffers())
    lazy = next((name for name, tensor in tensors if nn.parameter.is_lazy(tensor)), None)
    if lazy is not None:
        raise ModelError(
            f"'{lazy}' of {type(model).__name__} has no shape yet. Call the model once on your data, and load its "
            "weights, before it is explained."
        )
