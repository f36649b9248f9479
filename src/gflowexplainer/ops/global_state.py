"""What belongs to the whole process is changed by one thread at a time: random number generators, a model's mode."""

from __future__ import annotations

import os
import threading


class _Exclusive:
    """A lock that the thread that holds it may take again; a forked child begins with a free one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


GLOBAL_STATE = _Exclusive()
"""Held while a model is in evaluation mode or is looked at, and while weights are drawn from a seed."""
