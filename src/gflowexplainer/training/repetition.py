"""The same work again and again: a GPU records it once and then repeats it without waiting for Python."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

WORTH_RECORDING = 4
"""Repetitions from which on recording pays: it takes about as long as doing the work once."""


def repeat(work: Callable[[], Tensor], times: int, device: torch.device, *, same: bool) -> tuple[Tensor, Tensor]:
    """Does the same work so many ``times``.

    Args:
        work: What to do. It returns a number that does not depend on anything but what lies on ``device``.
        times: How often, at least once.
        device: Where it is done.
        same: Whether it is the same to a GPU every time: the same operations on tensors of the same shapes at the same
            places, none of which the CPU has to wait for. Then a GPU may record it.

    Returns:
        The first and the last number.
    """
    if device.type != "cuda" or not same or times < WORTH_RECORDING:
        numbers = [work() for _ in range(times)]
        return numbers[0], numbers[-1]
    graph, aside, here = torch.cuda.CUDAGraph(), torch.cuda.Stream(device), torch.cuda.current_stream(device)
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        first = work()
        # What other threads of the process do on the GPU meanwhile is their own affair.
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            last = work()
        finally:
            graph.capture_end()
    here.wait_stream(aside)
    for _ in range(times - 1):
        graph.replay()
    return first, last.clone()
