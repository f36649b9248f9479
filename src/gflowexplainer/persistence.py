"""Checkpoints: one safetensors file with JSON in its header, written atomically, read without pickle."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from gflowexplainer.errors import CheckpointError

FORMAT = "gflowexplainer-checkpoint-1"


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all."""
    write_file(path, lambda file: file.write(content))


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file piece by piece, by a function that is handed the open file: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def slug(name: str) -> str:
    """Makes a file name of any text."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-") or "case"


def write_checkpoint(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Stores tensors and JSON-able values in one file; an older checkpoint stays until the new one is whole."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "meta": json.dumps(meta), "checksum": checksum(tensors)}
    content = save(tensors, metadata=header)
    try:
        write_bytes(path, content)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint '{path}' could not be written: {error.strerror or error}. "
            "Free some space or choose another folder; what was there before is untouched."
        ) from error


def read_checkpoint(path: Path, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what :func:`write_checkpoint` stored."""
    if not path.is_file():
        raise CheckpointError(f"There is no checkpoint '{path}'.")
    try:
        with safe_open(str(path), framework="pt", device=str(device)) as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise CheckpointError(
                    f"'{path}' is a safetensors file, but no checkpoint of GFlowExplainer "
                    f"(its format is {header.get('format')!r}, expected {FORMAT!r})."
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if checksum(tensors) != header["checksum"]:
            raise ValueError("its contents do not have the checksum they were written with")
        return tensors, json.loads(header["meta"])
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"The checkpoint '{path}' is damaged and cannot be read ({error}). Delete it and train again."
        ) from error


def checksum(tensors: dict[str, Tensor]) -> str:
    """Adds up the contents of tensors, whatever their order, to tell whether a bit has changed."""
    total = 0
    for name, tensor in sorted(tensors.items()):
        content = tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        total = zlib.crc32(content, zlib.crc32(name.encode(), total))
    return f"{total:08x}"


def fingerprint(model: nn.Module) -> str:
    """Gives a short name of a model's architecture and weights, to tell whether a checkpoint belongs to it."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
