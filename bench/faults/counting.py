"""What became of faults, counted."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from gflowexplainer.errors import GFlowExplainerError

HEADS = ("tried", "survived", "typed", "unclear", "wrong")


@dataclass
class Count:
    """How a kind of fault ended.

    Attributes:
        name: The kind of fault.
        numbers: How often each end was seen.
        notes: What was unclear or wrong, in words.
    """

    name: str
    numbers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(HEADS, 0))
    notes: list[str] = field(default_factory=list)

    def add(self, end: str, what: str = "") -> None:
        """Counts one fault that ended as ``end`` says."""
        self.numbers["tried"] += 1
        self.numbers[end] += 1
        if end in ("unclear", "wrong"):
            self.notes.append(f"{end}: {what}")

    def judge(self, what: str, work: Callable[[], object], right: Callable[[object], bool] | None = None) -> None:
        """Does something that ought to fail with a typed error, or else to give what is ``right``."""
        try:
            found = work()
        except GFlowExplainerError as error:
            self.add("typed" if len(str(error)) > 20 else "unclear", f"{what}: {error}")
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__}: {str(error)[:100]} ({os.path.basename(where.filename)}:{where.lineno})"
            self.add("unclear", f"{what}: {said}")
        else:
            fine = right is not None and right(found)
            self.add("survived" if fine else "wrong", f"{what}: taken without a word")


def forked(work: Callable[[], object], *, kill_after: float | None = None, limit: float = 120.0) -> int:
    """Does something in a forked process, which is killed after some seconds; returns its exit code, -9 if killed.

    The child exits with 0, with 3 after a typed error, and with 4 after any other.
    """
    child = os.fork()
    if child == 0:
        code = 0
        try:
            with open(os.devnull, "w") as nothing:
                os.dup2(nothing.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
            work()
        except GFlowExplainerError:
            code = 3
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:
            code = 4
        finally:
            os._exit(code)
    end = time.monotonic() + (limit if kill_after is None else kill_after)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
