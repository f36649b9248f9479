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

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gflowexplainer.errors import ConfigError, DatasetError, one_of
from gflowexplainer.graphs.checks import check_edges
from gflowexplainer.ops.memory import free_memory
from gflowexplainer.sources.tensor_files import check_written, number_tensor, read_json, read_tensors, write_tensors

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
    tensors = _read_json(path) if path.suffix == ".json" else read_tensors(path)
    for name, value in tensors.items():
        attribute, *key = name.split(APART)
        if len(key) not in (1, 3) or not all((attribute, *key)):
            raise DatasetError(
                f"'{path}' holds '{name}'. Names are NAME__TYPE, as x__user, or NAME__SOURCE__RELATION__TARGET, as "
                "edge_index__user__buys__item."
            )
        store = graph[key[0] if len(key) == 1 else tuple(key)]
        if attribute == "num_nodes":
            store.num_nodes = _count(value, f"'{name}' in '{path}'")
        else:
            store[attribute] = value.float() if attribute == "x" else value
    if not graph.node_types or not graph.edge_types:
        raise DatasetError(
            f"'{path}' has no types or no relations. Give x__TYPE and edge_index__SOURCE__RELATION__TARGET."
        )
    _check(graph, path)
    return graph


def is_typed_file(path: Path) -> bool:
    """Returns whether a file holds a heterogeneous graph, by the names in it."""
    if not path.is_file() or path.suffix not in FORMATS:
        return False
    if path.suffix == ".json":
        content = read_json(path)
        return isinstance(content, dict) and isinstance(content.get("edges"), dict)
    return any(APART in name for name in read_tensors(path))


def save_typed_graph(path: str | Path, graph: HeteroData) -> Path:
    """Writes a heterogeneous graph as safetensors, which :func:`load_typed_graph` and the command line read."""
    path = Path(path)
    check_written(path)
    tensors: dict[str, Tensor] = {}
    for store in (*graph.node_stores, *graph.edge_stores):
        key = store._key if isinstance(store._key, tuple) else (store._key,)
        if any(APART in part for part in key):
            raise DatasetError(f"The name {store._key!r} holds '{APART}', which stands between names in a file.")
        tensors |= {APART.join((name, *key)): value for name, value in store.items() if isinstance(value, Tensor)}
        if "x" not in store and len(key) == 1:
            tensors[APART.join(("num_nodes", *key))] = torch.tensor(store.num_nodes)
    return write_tensors(path, tensors)


def _check(graph: HeteroData, path: Path) -> None:
    """Refuses types without a number of nodes, relations without edges, and edges that name no node."""
    counts = {}
    for key in graph.node_types:
        store = graph[key]
        if "x" in store and store.x.dim() != 2:
            raise DatasetError(f"'x__{key}' in '{path}' must be [num_nodes, width] (got {list(store.x.shape)}).")
        if "x" not in store and "num_nodes" not in store:
            known = ", ".join(map(str, store.keys()))
            raise DatasetError(f"'{path}' has '{known}' of '{key}', but neither 'x__{key}' nor 'num_nodes__{key}'.")
        counts[key] = store.x.size(0) if "x" in store else store.num_nodes
    for key in graph.edge_types:
        store, where = graph[key], f"'edge_index' of {' '.join(key)} in '{path}'"
        if "edge_index" not in store:
            raise DatasetError(f"{where} is missing (there is {', '.join(map(str, store.keys()))}).")
        edges = store.edge_index
        if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool or edges.shape[:1] != (2,):
            raise DatasetError(f"{where} must be whole numbers [2, E] (got {edges.dtype}, shape {list(edges.shape)}).")
        store.edge_index = edges = edges.long()
        for row, kind in enumerate((key[0], key[2])):
            if kind not in counts:
                raise DatasetError(f"{where} joins '{kind}', of which there are no nodes. Give x__{kind}.")
            try:
                check_edges(edges[row].expand(2, -1), counts[kind], f"'{kind}'")
            except ValueError as error:
                raise DatasetError(f"{where} is wrong: {error}") from error
        for name, value in store.items():
            if name != "edge_index" and value.dim() and value.size(0) != edges.size(1):
                raise DatasetError(
                    f"'{name}' of {' '.join(key)} in '{path}' has {value.size(0)} rows for {edges.size(1)} edges."
                )


def _count(value: Tensor, what: str) -> int:
    whole = value.numel() == 1 and not value.is_floating_point() and not value.is_complex()
    count = int(value) if whole and value.dtype != torch.bool else -1
    if count < 0:
        raise DatasetError(f"{what} must be a number of nodes (got {value.tolist()}).")
    if 8 * count > free_memory(torch.device("cpu")):
        raise DatasetError(f"{what} says {count} nodes, which is more than memory holds.")
    return count


def _read_json(path: Path) -> dict[str, Tensor]:
    content = read_json(path)
    nodes, edges = (content.get(name) if isinstance(content, dict) else None for name in ("nodes", "edges"))
    if not isinstance(nodes, dict) or not isinstance(edges, dict):
        raise DatasetError(f"'{path}' must hold 'nodes' by type and 'edges' by relation.")
    for key in content:
        try:
            one_of("key", key, ("nodes", "edges"))
        except ConfigError as error:
            raise DatasetError(f"'{path}': {error}") from error
    found: dict[str, Tensor] = {}
    for key, value in nodes.items():
        what = f"'{key}' of 'nodes' in '{path}'"
        if isinstance(value, list):
            found[f"x{APART}{key}"] = number_tensor(value, what, dim=2).float()
        else:
            found[f"num_nodes{APART}{key}"] = _number(value, what)
    for key, pairs in edges.items():
        ends = number_tensor(pairs, f"'{key}' of 'edges' in '{path}'", dim=2, whole=True)
        if ends.numel() and ends.size(1) != 2:
            raise DatasetError(f"'{key}' of 'edges' in '{path}' must be pairs of ids (got {ends.size(1)} in each).")
        found[APART.join(("edge_index", *key.split()))] = ends.reshape(-1, 2).long().t().contiguous()
    return found


def _number(value: Any, what: str) -> Tensor:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise DatasetError(f"{what} must be a number of nodes or their features (got {str(value)[:40]!r}).")
    return torch.tensor(value)
