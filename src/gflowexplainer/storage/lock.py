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
_held: dict[Path, int] = {}
"""Folders that this process writes to, and the thread that does."""
_guard = threading.Lock()


@contextmanager
def folder_lock(folder: str | Path) -> Iterator[None]:
    """Lets one thread of one process write to ``folder`` for the length of a block, and refuses any other.

    The thread that holds a folder may lock it again. Where the file system has no locks, nothing is locked.
    """
    path = make_folder(Path(folder)).resolve()
    mine = threading.get_ident()
    with _guard:
        again = path in _held
        if _held.setdefault(path, mine) != mine:
            raise CheckpointError(f"Another thread of this process is writing to '{folder}'. {_WAY}")
    if again:
        yield
        return
    file = None
    try:
        file = _locked(path / FILE, os.O_RDWR | os.O_CREAT)
        if file is not None:
            with suppress(OSError):  # on a full disk only the name of the holder is missing
                os.ftruncate(file, 0)
                os.pwrite(file, f"{_HOLDER}{os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        if file is not None:
            os.close(file)
        del _held[path]


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
