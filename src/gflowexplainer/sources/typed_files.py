"""Heterogeneous graphs in files: the names of arrays say which type or relation they belong to.

=================  ====================================================================================================
``.npz``,          ``x__TYPE`` [N_t, F_t] and ``edge_index__SOURCE__RELATION__TARGET`` [2, E_r]. Any other array
``.safetensors``   ``NAME__TYPE`` or ``NAME__SOURCE__RELATION__TARGET`` becomes the attribute ``NAME``; a type without
                   features says how many nodes it has by ``num_nodes__TYPE``.
``.json``          ``{"nodes": {"user": 3, "item": [[1.0], [0.5]]}, "edges": {"user buys item": [[0, 1], [2, 0]]}}``: a
                   number of nodes or their features, by type; pairs of ids, by relation.
=================  ====================================================================================================
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor
from torch_geometric.data import HeteroData

from gflowexplainer.errors import ConfigError, DatasetError
from gflowexplainer.storage.files import write_bytes

APART = "__"
FORMATS = (".npz", ".safetensors", ".json")


def load_typed_graph(path: str | Path) -> HeteroData:
    """Reads a heterogeneous graph; see the table at the top of this module for the formats."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ConfigError(f"Graphs of several types are read from {', '.join(FORMATS)} (got '{path.name}').")
    if not path.is_file():
        raise DatasetError(f"There is no file '{path}'.")
    graph = HeteroData()
    tensors = _read_json(path) if path.suffix == ".json" else _read_tensors(path)
    for name, value in tensors.items():
        attribute, *key = name.split(APART)
        if len(key) not in (1, 3) or not all(key):
            raise DatasetError(
                f"'{path}' holds '{name}'. Names are NAME__TYPE, as x__user, or NAME__SOURCE__RELATION__TARGET, as "
                "edge_index__user__buys__item."
            )
        store = graph[key[0] if len(key) == 1 else tuple(key)]
        if attribute == "num_nodes":
            store.num_nodes = int(value)
        elif attribute == "edge_index":
            store.edge_index = value.long().reshape(2, -1)
        else:
            store[attribute] = value.float() if attribute == "x" else value
    if not graph.node_types or not graph.edge_types:
        raise DatasetError(
            f"'{path}' has no types or no relations. Give x__TYPE and edge_index__SOURCE__RELATION__TARGET."
        )
    return graph


def is_typed_file(path: Path) -> bool:
    """Whether a file holds a heterogeneous graph, by the names in it."""
    if not path.is_file() or path.suffix not in FORMATS:
        return False
    if path.suffix == ".json":
        content = _json(path)
        return isinstance(content, dict) and isinstance(content.get("edges"), dict)
    return any(name.startswith(f"edge_index{APART}") for name in _read_tensors(path))


def save_typed_graph(path: str | Path, graph: HeteroData) -> Path:
    """Writes a heterogeneous graph as safetensors, which :func:`load_typed_graph` and the command line read."""
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ConfigError(f"Graphs are written as .safetensors (got '{path.name}').")
    tensors: dict[str, Tensor] = {}
    for store in (*graph.node_stores, *graph.edge_stores):
        key = store._key if isinstance(store._key, tuple) else (store._key,)
        if any(APART in part for part in key):
            raise DatasetError(f"The name {store._key!r} holds '{APART}', which stands between names in a file.")
        for name, value in store.items():
            if isinstance(value, Tensor):
                tensors[APART.join((name, *key))] = value.detach().cpu().contiguous().clone()
        if "x" not in store and store.is_node_attr is not None and not isinstance(store._key, tuple):
            tensors[APART.join(("num_nodes", *key))] = torch.tensor(store.num_nodes)
    write_bytes(path, save(tensors))
    return path


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(np.ascontiguousarray(arrays[name])) for name in arrays.files}
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise DatasetError(f"'{path}' cannot be read as {path.suffix} of plain numbers ({error}).") from error


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"'{path}' cannot be read as JSON ({error}).") from error


def _read_json(path: Path) -> dict[str, Tensor]:
    content = _json(path)
    nodes, edges = (content.get(name) if isinstance(content, dict) else None for name in ("nodes", "edges"))
    if not isinstance(nodes, dict) or not isinstance(edges, dict):
        raise DatasetError(f"'{path}' must hold 'nodes' by type and 'edges' by relation.")
    found: dict[str, Tensor] = {}
    try:
        for key, value in nodes.items():
            if isinstance(value, int):
                found[f"num_nodes{APART}{key}"] = torch.tensor(value)
            else:
                found[f"x{APART}{key}"] = torch.tensor(value, dtype=torch.float)
        for key, pairs in edges.items():
            ends = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
            found[APART.join(("edge_index", *key.split()))] = ends
    except (TypeError, ValueError, RuntimeError) as error:
        raise DatasetError(f"'{path}' holds what is no number of nodes, features or pairs ({error}).") from error
    return found
