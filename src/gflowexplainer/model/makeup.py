"""What a model is made of, as far as that decides how it is explained: found by one look at its modules."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch_geometric.nn import MessagePassing, RGCNConv

from gflowexplainer.errors import ConfigError
from gflowexplainer.model.adapter import shown_name
from gflowexplainer.model.hops import find_hops, refuse_lazy
from gflowexplainer.ops.devices import device_of


@dataclass(frozen=True)
class Makeup:
    """What holds of a model as long as it consists of the same modules and tensors.

    Attributes:
        num_hops: Message-passing steps, counted; 0 where no layer is known.
        num_relations: Relations that its layers tell apart, at least 1.
        device: Where it is; ``None`` if it has no tensors.
    """

    num_hops: int
    num_relations: int
    device: torch.device | None

    @classmethod
    def of(cls, model: nn.Module) -> Makeup:
        """Looks at a model, and refuses one that cannot be explained."""
        refuse_lazy(model)
        layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
        if any(layer.flow != "source_to_target" for layer in layers):
            raise ConfigError(
                f"{shown_name(model)} passes messages with flow='target_to_source', which is not supported. "
                "Build it with flow='source_to_target' and turn the edges round."
            )
        relations = max((layer.num_relations for layer in layers if isinstance(layer, RGCNConv)), default=1)
        return cls(find_hops(model), relations, device_of(model, None))
