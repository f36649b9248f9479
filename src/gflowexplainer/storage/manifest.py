"""The manifest of a folder: the files that a run has written into it, each with a digest of its content.

A line names a file before it is written, and another gives its digest afterwards. So a run that was interrupted knows
which files are its own, and a file that somebody has put there or changed is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.storage.files import append_text

FILE = "files.jsonl"


class Manifest:
    """The files that a run has written.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._digests: dict[str, str | None] = {}
        with suppress(OSError):
            for line in (folder / FILE).read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError, KeyError, TypeError):  # the last line of a run that was killed
                    entry = json.loads(line)
                    if not Path(entry["name"]).is_absolute() and ".." not in Path(entry["name"]).parts:
                        self._digests[entry["name"]] = entry.get("digest")

    def claim(self, *names: str) -> None:
        """Lists files that are about to be written; one that somebody else has put there is refused."""
        for name in names:
            if name not in self._digests and os.path.lexists(self.folder / name):
                raise ConfigError(
                    f"'{self.folder / name}' was not written by this run and would be replaced. Move it away, or "
                    "choose another folder."
                )
        self._add([{"name": name} for name in names if name not in self._digests])

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Yields the path of a file that is written in the block."""
        self.claim(name)
        self._add([{"name": name}])  # what is known of an older file no longer holds
        yield self.folder / name
        self.record(name)

    def record(self, *names: str) -> None:
        """Lists files that were written to their end."""
        self._add([{"name": name, "digest": _digest(self.folder / name)} for name in names])

    def __contains__(self, name: str) -> bool:
        return name in self._digests

    def is_whole(self, name: str) -> bool:
        """Returns whether a file is there as it was written to its end."""
        path = self.folder / name
        return self._digests.get(name) is not None and path.is_file() and _digest(path) == self._digests[name]

    def has(self, name: str) -> bool:
        """Returns whether a file was written to its end; raises an error if it has changed since."""
        whole = self.is_whole(name)
        if not whole and self._digests.get(name) is not None and (self.folder / name).is_file():
            raise CheckpointError(
                f"'{self.folder / name}' has changed since this run wrote it. Delete it and run the same command again."
            )
        return whole

    def any_whole(self) -> bool:
        """Returns whether a file was written to its end."""
        return any(digest is not None for digest in self._digests.values())

    def inside(self, folder: str) -> list[str]:
        """Returns the names of the own files in a folder that were written to their end."""
        return [name for name in self._digests if name.startswith(f"{folder}/") and self.has(name)]

    def delete(self) -> None:
        """Deletes the own files, and folders that are empty without them; nothing else."""
        for name in self._digests:
            path = self.folder / name
            if path.is_symlink() or path.is_file():
                path.unlink()
        for name in sorted(self._digests, key=len, reverse=True):
            for folder in (name, str(Path(name).parent)):
                with suppress(OSError):
                    if folder != ".":
                        (self.folder / folder).rmdir()
        (self.folder / FILE).unlink(missing_ok=True)
        self._digests.clear()

    def _add(self, entries: list[dict[str, str]]) -> None:
        if not entries:
            return
        lines = "".join(f"\n{json.dumps(entry)}" for entry in entries)  # the line before may have been cut off
        append_text(self.folder / FILE, lines)
        self._digests |= {entry["name"]: entry.get("digest") for entry in entries}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
