"""How far information travels in a model: its message-passing steps, counted."""

from __future__ import annotations

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

from gflowexplainer.errors import ConfigError


def count_hops(model: nn.Module) -> int:
    """Counts the message-passing steps of ``model``: how far information travels to a node.

    A layer that is called several times in one forward call is counted once; pass ``num_hops`` then.
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
