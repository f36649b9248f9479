"""What a model is made of, as far as that decides how it is explained: its message-passing steps, relations, device."""

from __future__ import annotations

import weakref
from functools import cached_property
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
    RGCNConv,
    SGConv,
    SSGConv,
    TAGConv,
)

from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.model.adapter import shown_name
from gflowexplainer.model.locality import Locality
from gflowexplainer.ops.devices import device_of
from gflowexplainer.ops.global_state import GLOBAL_STATE
from gflowexplainer.storage.identity import model_fingerprint


class KnownModel:
    """What was found out about a model, as long as it consists of the same modules and tensors.

    Args:
        model: The model; one that cannot be explained is refused.

    Attributes:
        num_hops: Message-passing steps, counted; 0 where no layer is known.
        num_relations: Relations that its layers tell apart, at least 1.
        device: Where it is; ``None`` if it has no tensors.
        localities: What its predictions depend on, for each way to call it.
    """

    def __init__(self, model: nn.Module) -> None:
        tensors = (*model.named_parameters(), *model.named_buffers())
        lazy = next((name for name, tensor in tensors if nn.parameter.is_lazy(tensor)), None)
        if lazy is not None:
            raise ModelError(
                f"'{lazy}' of {type(model).__name__} has no shape yet. Call the model once on your data, and load its "
                "weights, before it is explained."
            )
        layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
        if any(layer.flow != "source_to_target" for layer in layers):
            raise ConfigError(
                f"{shown_name(model)} passes messages with flow='target_to_source', which is not supported. "
                "Build it with flow='source_to_target' and turn the edges round."
            )
        self._model = weakref.ref(model)
        self.num_hops = _count(model, set())
        self.num_relations = max((layer.num_relations for layer in layers if isinstance(layer, RGCNConv)), default=1)
        self.device = device_of(model, None)
        self.localities: dict[Any, Locality] = {}

    @cached_property
    def fingerprint(self) -> str:
        """A name of the model that can be stored."""
        with GLOBAL_STATE:
            return model_fingerprint(self._model())  # type: ignore[arg-type]

    def hops(self, given: Any) -> int:
        """Returns how far information travels in the model: as ``given`` by the user, else as counted.

        A layer that is called several times in one forward call is counted once;
        :func:`~gflowexplainer.model.probe.find_locality` sees how often it is. Layers of different relations that
        stand beside each other, as in ``HeteroConv`` and ``to_hetero``, are one step together.
        """
        check_hops(given)
        if given is None and self.num_hops == 0:
            raise ConfigError(
                f"No torch_geometric MessagePassing layer was found in {type(self._model()).__name__}, so the size of "
                "its computation graphs is unknown. Pass 'num_hops'."
            )
        return self.num_hops if given is None else given


def check_hops(num_hops: Any) -> None:
    """Refuses a number of hops that is none."""
    if num_hops is None:
        return
    if not isinstance(num_hops, int) or isinstance(num_hops, bool) or num_hops < 0:
        raise ConfigError(f"'num_hops' must be a whole number that is not negative (got {num_hops!r}).")


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
