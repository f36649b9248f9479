"""One writer a folder: a lock that the operating system releases when its process ends, however it ends."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.files import make_folder

FILE = ".lock"
_HOLDER, _WAY = "Process ", "Wait until it has ended, or use another folder."
_held: dict[Path, tuple[int, int]] = {}
"""Folders that this process writes to: the thread that holds each, and how many of its blocks do."""
_guard = threading.Lock()


@contextmanager
def folder_lock(folder: str | Path) -> Iterator[None]:
    """Lets one thread of one process write to ``folder`` for the length of a block, and refuses any other.

    The thread that holds a folder may lock it again. Where the file system has no locks, nothing is locked.
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
            file = _locked(path / FILE, os.O_RDWR | os.O_CREAT)
            _sign(file)
        yield
    finally:
        with _guard:
            if times:
                _held[path] = (mine, times)
            else:
                del _held[path]
        if file is not None:
            os.close(file)


def refuse_other_writer(folder: Path) -> None:
    """Raises an error if another process holds the lock of ``folder``; makes no file."""
    path = folder.resolve()
    if path not in _held and (path / FILE).is_file():
        file = _locked(path / FILE, os.O_RDONLY)
        if file is not None:
            os.close(file)


def _locked(path: Path, flags: int) -> int | None:
    """Opens and locks a file of ours; ``None`` where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    foreign = CheckpointError(f"'{path}' is no lock file of this package. Remove it, or use another folder.")
    try:
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if path.is_symlink():
            raise foreign from error
        raise CheckpointError(
            f"'{path.parent}' cannot be written to: {error.strerror}. Choose a folder that can be."
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(file, 200, 0).decode(errors="replace").strip() or "another process"
        os.close(file)
        raise CheckpointError(f"{holder} is writing to '{path.parent}'. {_WAY}") from error
    except OSError:
        os.close(file)
        return None
    content = os.pread(file, len(_HOLDER), 0) if stat.S_ISREG(os.fstat(file).st_mode) else b"no file"
    if content not in (b"", _HOLDER.encode()):
        os.close(file)
        raise foreign
    return file


def _sign(file: int | None) -> None:
    """Writes who holds the lock into its file; on a full disk only that name is missing."""
    if file is not None:
        with suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, f"{_HOLDER}{os.getpid()} on {socket.gethostname()}".encode(), 0)
