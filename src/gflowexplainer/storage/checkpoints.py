"""Checkpoints: one safetensors file with JSON in its header, written atomically, read without pickle."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.files import is_file, make_folder, write_bytes
from gflowexplainer.storage.lock import refuse_other_writer

FORMAT = "gflowexplainer-checkpoint-2"
_BEGINNING = 1 << 20
"""Bytes of a file that are looked at to tell whether it is one of ours."""
Sections = dict[str, dict[str, Tensor]]
"""Tensors by section and name."""


def write_checkpoint(path: Path, sections: Sections, meta: dict[str, Any]) -> None:
    """Writes tensors in named sections and JSON-able values to one file; an older one stays until the new one is whole.

    A file that is no checkpoint of ours is not replaced, and nothing is written where another process writes.

    Args:
        path: The file.
        sections: Tensors by section and name; names of sections hold no slash.
        meta: What else is stored, as JSON.
    """
    if is_file(path) and path.stat().st_size and not _is_ours(path):
        raise CheckpointError(f"'{path}' was not written by this package. Move it away, or choose another folder.")
    refuse_other_writer(make_folder(path.parent))
    tensors = {
        f"{label}/{name}": tensor.detach().cpu().contiguous()
        for label, part in sections.items()
        for name, tensor in part.items()
    }
    text = json.dumps(meta)
    header = {"format": FORMAT, "meta": text, "checksum": checksum(tensors, text)}
    write_bytes(path, _in_order(save(tensors, metadata=header), header))


def read_checkpoint(
    path: Path, device: torch.device | str = "cpu", *, holds: str = "checkpoint"
) -> tuple[Sections, dict[str, Any]]:
    """Returns what :func:`write_checkpoint` stored; a section that was stored empty is not among it.

    Args:
        path: The file.
        device: Where the tensors go.
        holds: What the user calls it: ``"checkpoint"`` or ``"explanation"``.
    """
    if not is_file(path):
        raise CheckpointError(f"There is no {holds} '{path}'.")
    try:
        with safe_open(str(path), framework="pt", device=str(device)) as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise CheckpointError(
                    f"'{path}' is a safetensors file, but no {holds} of this version of GFlowExplainer "
                    f"(its format is {header.get('format')!r}, expected {FORMAT!r})."
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if checksum(tensors, header["meta"]) != header["checksum"]:
            raise ValueError("its contents do not have the checksum they were written with")
        sections: Sections = {}
        for name, tensor in tensors.items():
            label, _, rest = name.partition("/")
            sections.setdefault(label, {})[rest] = tensor
        meta = json.loads(header["meta"])
        if not isinstance(meta, dict):
            raise ValueError(f"its metadata is a {type(meta).__name__}")
        return sections, meta
    except (SafetensorError, OSError, KeyError, ValueError, RecursionError) as error:
        again = "explain" if holds == "explanation" else "train"
        if not _is_ours(path):
            raise CheckpointError(
                f"'{path}' holds no {holds}, or is damaged ({error}). Name another file, or {again} again."
            ) from error
        raise CheckpointError(
            f"The {holds} '{path}' is damaged and cannot be read ({error}). Delete it and {again} again."
        ) from error


def checksum(tensors: dict[str, Tensor], text: str = "") -> str:
    """Returns a checksum of names and contents of tensors, in any order, and of a text."""
    total = zlib.crc32(text.encode())
    for name, tensor in sorted(tensors.items()):
        content = tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        total = zlib.crc32(content, zlib.crc32(name.encode(), total))
    return f"{total:08x}"


def _in_order(content: bytes, metadata: dict[str, str]) -> bytes:
    """Returns the same file with its metadata first and in this order, which safetensors shuffles at every call."""
    begin = 8 + int.from_bytes(content[:8], "little")
    entries = {"__metadata__": metadata} | {
        name: entry for name, entry in json.loads(content[8:begin]).items() if name != "__metadata__"
    }
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return b"".join([len(header).to_bytes(8, "little"), header, content[begin:]])


def _is_ours(path: Path) -> bool:
    """Returns whether a file begins as one that :func:`write_checkpoint` has written, of any version."""
    try:
        with path.open("rb") as file:
            return FORMAT.rpartition("-")[0].encode() in file.read(_BEGINNING)
    except OSError:
        return False
