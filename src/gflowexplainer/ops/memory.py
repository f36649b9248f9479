"""Memory that work needs, compared with what there is before any of it is taken."""

from __future__ import annotations

import os

import torch

from gflowexplainer.errors import ConfigError

LOOKED_AT = 1 << 28
"""Allocations up to this size are not checked."""


def free_memory(device: torch.device) -> int:
    """Returns the bytes that are free on a device; practically infinite where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError, IndexError):
        return 1 << 62


def refuse_beyond_memory(needed: int, device: torch.device, what: str, remedy: str) -> None:
    """Refuses work that needs more bytes than there are, with the number; takes nothing.

    Args:
        needed: Bytes that the work takes at least.
        device: Where.
        what: The work, as a sentence begins.
        remedy: What to do instead.
    """
    if needed <= LOOKED_AT:
        return
    free = free_memory(device)
    if needed > free:
        raise ConfigError(f"{what} would need about {needed / 1e9:.3g} GB, but {free / 1e9:.3g} GB are free. {remedy}")


def batch_budget(given: int | None, device: torch.device) -> int:
    """Returns the bytes that one batch of work may take on a device: those given, else a part of what there is."""
    if given is not None:
        return given
    return torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else 1 << 30


def model_budget(whole: int) -> int:
    """Returns what of so many bytes may be put before a model: it keeps a few times as much while it works."""
    return max(1, whole // 4)
