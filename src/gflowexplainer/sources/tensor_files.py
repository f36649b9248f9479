"""Tensors by name in ``.safetensors`` and ``.npz`` files, and JSON: read within bounds, written whole or not at all."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from gflowexplainer.errors import CheckpointError, ConfigError, DatasetError
from gflowexplainer.ops.memory import free_memory
from gflowexplainer.storage.files import write_bytes


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a ``.safetensors`` or ``.npz`` file."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(np.ascontiguousarray(arrays[name])) for name in arrays.files}
    except DatasetError:
        raise
    # A damaged archive may raise nearly anything: zlib.error, struct.error, SyntaxError, KeyError, MemoryError.
    except Exception as error:
        way = "" if path.suffix == ".safetensors" else " Write it with numpy.savez(path, x=x, edge_index=edge_index)."
        raise DatasetError(
            f"'{path}' cannot be read as {path.suffix} of plain numbers, or is damaged ({error}).{way}"
        ) from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    """Writes tensors as safetensors; an old file is replaced only by a whole new one."""
    try:
        write_bytes(path, save({name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}))
    except (OSError, SafetensorError) as error:
        said = getattr(error, "strerror", None) or error
        raise CheckpointError(f"'{path}' could not be written: {said}. Choose another folder.") from error
    return path


def check_written(path: Path) -> None:
    """Refuses a file that graphs are to be written to under an ending that is not ``.safetensors``."""
    if path.suffix != ".safetensors":
        raise ConfigError(f"Graphs are written as .safetensors (got '{path.name}').")


def read_json(path: Path) -> Any:
    """Reads a JSON file of the user's."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise DatasetError(f"'{path}' cannot be read as JSON: {error}.") from error


def number_tensor(value: Any, what: str, *, dim: int, whole: bool = False) -> Tensor:
    """Returns nested lists of numbers as a tensor with ``dim`` dimensions.

    Args:
        value: The lists, as JSON gives them.
        what: What they are, as an error message begins.
        dim: Number of dimensions.
        whole: Whether only whole numbers are allowed.
    """
    shape = {1: "a list of numbers", 2: "a list of lists of numbers, all of one length"}[dim]
    try:
        tensor = torch.tensor(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DatasetError(f"{what} must be {shape} ({error}).") from error
    if tensor.dim() != dim and tensor.numel():
        raise DatasetError(f"{what} must be {shape} (got shape {list(tensor.shape)}).")
    if whole and tensor.numel() and tensor.dtype != torch.long:
        raise DatasetError(f"{what} must hold whole numbers (got {str(tensor.dtype).removeprefix('torch.')}).")
    return tensor if tensor.numel() else tensor.reshape([0] * dim)


def _check_sizes(path: Path) -> None:
    """Refuses arrays that claim another size than what is stored of them, or more than memory, before they are read."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith(".npy"):
                continue
            with archive.open(entry) as file:
                version = npy.read_magic(file)
                shape, _, kind = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
                claimed, stored = math.prod(shape) * kind.itemsize, entry.file_size - file.tell()
            if not kind.hasobject and claimed != stored:
                raise DatasetError(
                    f"'{entry.filename}' in '{path}' claims {claimed} bytes, shape {list(shape)}, but {stored} are "
                    "stored. The file is damaged; write it again."
                )
        total = sum(entry.file_size for entry in archive.infolist())
    if total > free_memory(torch.device("cpu")):
        raise DatasetError(f"'{path}' holds {total / 1e9:.3g} GB when unpacked, more than there is memory.")
