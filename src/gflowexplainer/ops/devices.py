"""Where a model is."""

from __future__ import annotations

from itertools import chain
from typing import TypeVar

import torch
from torch import nn

Default = TypeVar("Default")


def device_of(model: nn.Module, default: Default) -> torch.device | Default:
    """Returns the device of a model's first parameter or buffer; ``default`` if it has none."""
    first = next(chain(model.parameters(), model.buffers()), None)
    return default if first is None else first.device
