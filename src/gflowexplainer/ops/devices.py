"""Where a model is."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

Default = TypeVar("Default")


def device_of(model: nn.Module, default: Default) -> torch.device | Default:
    """Returns the device of a model's first parameter or buffer; ``default`` if it has none."""
    return next((tensor.device for tensor in (*model.parameters(), *model.buffers())), default)
