"""Ctrl-C, SIGTERM and SIGHUP wait for the end of what must not be left half done, and end the rest alike."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a process to end, beside Ctrl-C."""


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C asked the process to end.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"The process was asked to end ({signal.Signals(number).name}).")
        self.number = number


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


@contextmanager
def endings_interrupt() -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into an interrupt for the length of a block, so that what was done is stored.

    A signal that is ignored (as under ``nohup``) or has a handler of the program's own stays as it is, and so does
    everything outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in ENDS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Holds interrupts back until the block is done; a second one comes through at once.

    Only the main thread gets signals, so in any other nothing is changed, nor where the program has no handler of its
    own to hold back. The handlers that were there before are there again afterwards, also if an exception is raised.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDS)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            waiting.clear()
            handlers[number](number, frame)
        else:
            waiting.append((number, frame))

    for number in handlers:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if waiting:
            number, frame = waiting[0]
            handlers[number](number, frame)


@contextmanager
def handlers_return() -> Iterator[None]:
    """Puts the handlers of signals back after a block, whatever a library inside of it set.

    Only the main thread can set one, so in any other nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDS)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
