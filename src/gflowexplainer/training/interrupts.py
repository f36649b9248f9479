"""Ctrl-C waits for the end of what must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Holds an interrupt (``SIGINT``) back until the block is done; a second one comes through at once.

    Only the main thread gets signals, so in any other nothing is changed, nor where the program has no handler of its
    own to hold back. The handler that was there before is there again afterwards, also if an exception is raised.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    waiting: list[FrameType | None] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            waiting.clear()
            before(number, frame)
        else:
            waiting.append(frame)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            before(signal.SIGINT, waiting[0])
