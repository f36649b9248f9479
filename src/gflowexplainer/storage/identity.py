"""Short names that change with what they name: the weights of a model, or a set of settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from gflowexplainer.storage.files import dumps


def model_fingerprint(model: nn.Module) -> str:
    """Returns a short name of a model's architecture and weights, to tell whether a checkpoint belongs to it."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def settings_fingerprint(settings: Mapping[str, Any]) -> str:
    """Returns a short name of settings that changes with any of them."""
    return hashlib.sha256(dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
