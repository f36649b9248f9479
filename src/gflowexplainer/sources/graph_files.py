"""Graphs in files, plain and of several types: one reader for all formats, and the one format that we write ourselves.

=================  ====================================================================================================
``.safetensors``   ``x`` [N, F], ``edge_index`` [2, E] and any further tensors, such as ``y``, ``edge_attr`` or
                   ``edge_weight``. Several graphs lie one after the other, told apart by ``batch`` [N] or
                   ``ptr`` [G + 1]. Written by :func:`save_graphs`.
                   Of several types, names say which: ``x__TYPE`` [N_t, F_t] (or ``num_nodes__TYPE`` where there are no
                   features), ``edge_index__SOURCE__RELATION__TARGET`` [2, E_r], and ``NAME__...`` for any attribute.
``.npz``           The same names as NumPy arrays: ``numpy.savez(path, x=..., edge_index=...)``.
``.pt``, ``.pth``  ``torch.save`` of a ``Data``, a list of them, or a dictionary of tensors with the names above. Read
                   with ``weights_only=True``: nothing in the file is run.
``.json``          See :mod:`gflowexplainer.sources.json_graphs`.
a folder           All such files in it, in the order of their names, numbers counted as numbers.
=================  ====================================================================================================
"""

from __future__ import annotations

import math
import os
import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from safetensors.torch import load_file, save
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

from gflowexplainer.errors import ConfigError, DatasetError
from gflowexplainer.ops.memory import free_memory
from gflowexplainer.sources.graph_tensors import checked, graphs_of_tensors, tensors_of_graphs
from gflowexplainer.sources.json_graphs import read_json_graphs
from gflowexplainer.storage.files import is_file, write_bytes

FORMATS = (".safetensors", ".npz", ".pt", ".pth", ".json")
_SAFE = (Data, DataEdgeAttr, DataTensorAttr, BaseStorage, EdgeStorage, GlobalStorage, NodeStorage)
"""What a ``Data`` is made of: all that a ``.pt`` file may hold beside tensors and plain values."""


def load_graphs(path: str | Path) -> list[Any]:
    """Reads one graph or many; see the table at the top of this module for the formats.

    Features that are whole numbers or booleans become float32, edges int64.

    Returns:
        Each a ``Data``, or a ``HeteroData`` where the file names types.
    """
    path = Path(path)
    if os.path.isdir(path):
        files = sorted((file for file in path.iterdir() if file.suffix in FORMATS), key=_natural)
        if not files:
            raise DatasetError(f"The folder '{path}' holds no graphs ({', '.join(FORMATS)}).")
        return [graph for file in files for graph in load_graphs(file)]
    if not is_file(path):
        beside = path.parent.iterdir() if os.path.isdir(path.parent) else ()
        near = sorted(file.name for file in beside if file.stem == path.stem)
        hint = f" There is '{near[0]}' beside it." if near else ""
        raise DatasetError(f"There is no file '{path}'.{hint}")
    if path.suffix not in FORMATS:
        raise ConfigError(f"Graphs are read from {', '.join(FORMATS)} or a folder of them (got '{path.name}').")
    if path.suffix == ".json":
        graphs = read_json_graphs(path)
    elif path.suffix in (".pt", ".pth"):
        graphs = _read_torch(path)
    else:
        graphs = graphs_of_tensors(_read_tensors(path), f"'{path}'")
    if not graphs:
        raise DatasetError(f"'{path}' holds no graph.")
    return [checked(graph, f" of graph {number} in '{path}'") for number, graph in enumerate(graphs)]


def load_typed_graph(path: str | Path) -> HeteroData:
    """Reads the one heterogeneous graph of a file; see :func:`load_graphs`."""
    graphs = load_graphs(path)
    if len(graphs) != 1 or not isinstance(graphs[0], HeteroData):
        raise DatasetError(
            f"'{path}' holds no heterogeneous graph. Name arrays x__TYPE and edge_index__A__RELATION__B."
        )
    return graphs[0]


def save_graphs(path: str | Path, graphs: Data | HeteroData | Iterable[Data]) -> Path:
    """Writes one graph or many as safetensors, which :func:`load_graphs` and the command line read.

    Args:
        path: The file, ending in ``.safetensors``; an old one is replaced only by a whole new one.
        graphs: Graphs with the same tensor attributes, or one heterogeneous graph. Attributes that are no tensors are
            refused.

    Example:
        >>> save_graphs("graphs.safetensors", [data])  # doctest: +SKIP
    """
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ConfigError(f"Graphs are written as .safetensors (got '{path.name}').")
    tensors = tensors_of_graphs([graphs] if isinstance(graphs, Data | HeteroData) else list(graphs))
    write_bytes(path, save({name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}))
    return path


def save_typed_graph(path: str | Path, graph: HeteroData) -> Path:
    """Writes a heterogeneous graph; see :func:`save_graphs`."""
    return save_graphs(path, graph)


def _read_tensors(path: Path) -> dict[str, Tensor]:
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


def _read_torch(path: Path) -> list[Any]:
    """Reads a file of ``torch.save``; of PyG only the classes that a ``Data`` is made of are let in."""
    way = (
        "If you trust it, convert it once in Python: gflowexplainer.sources.save_graphs('graphs.safetensors', "
        f"torch.load('{path}', weights_only=False))."
    )
    try:
        with torch.serialization.safe_globals([*_SAFE]):
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DatasetError(
            f"'{path}' holds more than a Data, a list of them or a dictionary of tensors, and reading that could run "
            f"foreign code. {way}"
        ) from error
    except Exception as error:
        raise DatasetError(f"'{path}' cannot be read by torch.load ({type(error).__name__}: {error}).") from error
    if isinstance(content, Mapping) and all(isinstance(value, Tensor) for value in content.values()):
        return graphs_of_tensors(content, f"'{path}'")
    graphs = [content] if isinstance(content, Data) else content
    if isinstance(graphs, list | tuple) and graphs and all(isinstance(graph, Data) for graph in graphs):
        return list(graphs)
    kind = type(content).__name__
    raise DatasetError(f"'{path}' holds a {kind}, not a Data, a list of them or a dictionary of tensors. {way}")


def _natural(path: Path) -> list[tuple[int, str | int]]:
    """Orders ``graph2`` before ``graph10``."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", path.name) if part]
