"""Files that are there whole or not at all: bytes, text and strict JSON, written atomically; and names for them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from gflowexplainer.errors import CheckpointError

_LONGEST = 80
"""Letters of a name that its file name keeps."""


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file by a function that is handed the open file.

    Whatever happens, the old or the new file is there whole. A file that is replaced hands its permissions on.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with _told(path):
            with temporary.open("xb") as file:
                with suppress(OSError):
                    os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file; see :func:`write_file`."""
    write_file(path, lambda file: file.write(content))


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Writes a text; see :func:`write_file`."""
    write_bytes(Path(path), text.encode(errors="replace"))
    return Path(path)


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Writes JSON; see :func:`write_file`."""
    return write_text(path, dumps(value, indent=1) + "\n")


def append_text(path: Path, text: str) -> None:
    """Adds a text to the end of a file."""
    make_folder(path.parent)
    with _told(path), path.open("a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Says of a failed write what failed, and what to do."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"'{path}' could not be written: {error.strerror or error}. "
            "Free some space or choose another folder; what was there before is untouched."
        ) from error


def make_folder(path: Path) -> Path:
    """Makes a folder and those above it, or raises an error that says why it cannot."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        shown = str(path) if len(str(path)) < 200 else f"{str(path)[:80]}... ({len(str(path))} characters)"
        raise CheckpointError(f"The folder {shown!r} cannot be made: {said}. Choose another one.") from error
    return path


def is_file(path: Path) -> bool:
    """Returns whether there is such a file, also for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def slug(name: str) -> str:
    """Returns a file name for any text; two texts may get the same, see :func:`file_name`."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-") or "case"


def file_name(name: str) -> str:
    """Returns a file name for any text; different texts get different names, also where case does not count.

    Words in lower case are joined by hyphens. Any other text is followed by a tilde and a digest.
    """
    if re.fullmatch(r"[a-z0-9_]+( [a-z0-9_]+)*", name) and len(name) <= _LONGEST:
        return slug(name)
    return f"{slug(name)[:_LONGEST]}~{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:10]}"


def dumps(value: Any, **options: Any) -> str:
    """Returns strict JSON: a number that is not finite becomes ``null``."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, **options)


def read_json(path: str | os.PathLike[str]) -> Any:
    """Returns what a JSON file of this package holds."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"'{path}' cannot be read as JSON: {error}. Delete it and run again.") from error


def _plain(value: Any) -> Any:
    """Replaces what JSON does not know."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic | torch.Tensor):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
