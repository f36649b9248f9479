"""One writer a folder: a lock that the operating system lets go of when its process ends, however it ends."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.files import make_folder

FILE = ".lock"
_held: dict[Path, tuple[int, int]] = {}
"""Folders that this process writes to: by which thread, and how often it has said so."""
_guard = threading.Lock()


@contextmanager
def folder_lock(folder: str | Path) -> Iterator[None]:
    """Lets one thread of one process write to ``folder`` for the length of a block; any other one is told who does.

    The thread that holds a folder may ask for it again. Where the file system knows no locks, nothing is locked.
    """
    path = make_folder(Path(folder)).resolve()
    mine = threading.get_ident()
    with _guard:
        thread, times = _held.get(path, (mine, 0))
        if thread != mine:
            raise CheckpointError(f"Another thread of this process is writing to '{folder}'. {_WAY}")
        _held[path] = (mine, times + 1)
    file = None
    try:
        if times == 0:
            file = _locked(path / FILE, folder)
        yield
    finally:
        with _guard:
            if times:
                _held[path] = (mine, times)
            else:
                del _held[path]
        if file is not None:
            os.close(file)


_WAY = "Wait until it has ended, or use another folder."


def _locked(path: Path, folder: str | Path) -> int | None:
    """Opens and locks a file; says who holds it if another process does."""
    try:
        import fcntl
    except ImportError:  # a system that has other locks
        return None
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CheckpointError(
            f"'{folder}' cannot be written to: {error.strerror}. Choose a folder that can be."
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(file, 200, 0).decode(errors="replace").strip() or "another process"
        os.close(file)
        raise CheckpointError(f"{holder} is writing to '{folder}'. {_WAY}") from error
    except OSError:
        os.close(file)
        return None
    with suppress(OSError):  # a full disk, on which only the name of the holder is missing
        os.ftruncate(file, 0)
        os.pwrite(file, f"Process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    return file
