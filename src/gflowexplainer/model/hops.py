"""How far information travels in a model: its message-passing steps, counted."""

from __future__ import annotations

from typing import Any

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


def count_hops(model: nn.Module) -> int:
    """Counts the message-passing steps of ``model``: how far information travels to a node.

    A layer that is called several times in one forward call is counted once;
    :func:`~gflowexplainer.model.locality.find_locality` sees how often it is.
    """
    hops = sum(_steps(module) for module in model.modules() if isinstance(module, MessagePassing))
    if hops == 0:
        raise ConfigError(
            f"No torch_geometric MessagePassing layer was found in {type(model).__name__}, so the size of its "
            "computation graphs is unknown. Pass 'num_hops'."
        )
    return hops


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
