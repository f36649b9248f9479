"""Graphs written by hand as JSON.

.. code-block:: json

    {
      "nodes": ["ann", "bob", "eve"],
      "edges": [["ann", "bob"], ["bob", "eve"]],
      "features": [[1.0, 0.0], [0.5, 0.2], [0.0, 1.0]],
      "undirected": true,
      "labels": [0, 1, 1]
    }

- ``nodes``: names of the nodes, which the report shows, or their number; ``num_nodes`` says the number too.
- ``edges``: pairs of names, or of ids that count from 0.
- ``features``: one list of numbers a node.
- ``undirected``: whether each edge stands for both directions; true if not given.
- ``labels``: optional, one class (or value) a node; ``label``: that of the whole graph.
- ``edge_features``: optional, one list a written edge (``edge_attr`` of PyG); ``edge_weights``: one number each.

A list of such graphs, or ``{"graphs": [...]}``, holds many. A graph of several types has a number of nodes or their
features by type, and pairs of ids by relation:
``{"nodes": {"user": 3, "item": [[1.0], [0.5]]}, "edges": {"user buys item": [[0, 1], [2, 0]]}}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from gflowexplainer.errors import ConfigError, DatasetError, one_of
from gflowexplainer.sources.graph_tensors import APART, graphs_of_tensors

KEYS = ("nodes", "num_nodes", "edges", "features", "undirected", "labels", "label", "edge_features", "edge_weights")


def read_json_graphs(path: Path) -> list[Any]:
    """Reads the graphs of a JSON file; names of nodes are kept as ``node_names``."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise DatasetError(f"'{path}' cannot be read as JSON: {error}.") from error
    if isinstance(content, dict) and any(isinstance(content.get(name), dict) for name in ("nodes", "edges")):
        return graphs_of_tensors(_typed_tensors(content, f"'{path}'"), f"'{path}'")
    if isinstance(content, dict) and set(content) == {"graphs"}:
        content = content["graphs"]
    entries = content if isinstance(content, list) else [content]
    return [_graph(entry, f"Graph {number} in '{path}'") for number, entry in enumerate(entries)]


def _typed_tensors(content: dict[str, Any], where: str) -> dict[str, Tensor]:
    _check_keys(content, ("nodes", "edges"), where)
    nodes, edges = content.get("nodes"), content.get("edges")
    if not (nodes and edges and isinstance(nodes, dict) and isinstance(edges, dict)):
        raise DatasetError(f"{where} must hold 'nodes' by type and 'edges' by relation.")
    found: dict[str, Tensor] = {}
    for key, value in nodes.items():
        if isinstance(value, list):
            found[f"x{APART}{key}"] = _numbers(value, f"{where}: '{key}' of 'nodes'", dim=2)
        elif type(value) is int and 0 <= value < 1 << 62:
            found[f"num_nodes{APART}{key}"] = torch.tensor(value)
        else:
            got = repr(str(value)[:40])
            raise DatasetError(f"{where}: '{key}' of 'nodes' must be a number of nodes or their features (got {got}).")
    for key, pairs in edges.items():
        found[APART.join(("edge_index", *key.split()))] = _pairs(pairs, {}, f"{where}: '{key}' of 'edges'")
    return found


def _graph(entry: Any, where: str) -> Data:
    if not isinstance(entry, dict):
        raise DatasetError(f'{where} is a {type(entry).__name__}. Write {{"edges": [...], "features": [...]}}.')
    _check_keys(entry, KEYS, where)
    for key in ("edges", "features"):
        if key not in entry:
            raise DatasetError(f"{where} has no '{key}'. Give 'edges' and 'features', one list of numbers a node.")
    x = _numbers(entry["features"], f"{where}: 'features'", dim=2).float()
    names = _names(entry, x.size(0), where)
    edge_index = _pairs(entry["edges"], {name: node for node, name in enumerate(names or [])}, f"{where}: 'edges'")
    rows: dict[str, Tensor] = {}
    for key, attribute, dim in (("edge_features", "edge_attr", 2), ("edge_weights", "edge_weight", 1)):
        if key in entry:
            rows[attribute] = _numbers(entry[key], f"{where}: '{key}'", dim=dim).float()
            _check_count(rows[attribute].size(0), edge_index.size(1), "edges", f"{where}: '{key}'")
    undirected = entry.get("undirected", True)
    if not isinstance(undirected, bool):
        raise DatasetError(f"{where}: 'undirected' must be true or false (got {undirected!r}).")
    if undirected:  # an edge that is written twice counts once, with its first features
        place = torch.arange(edge_index.size(1)).repeat(2)
        both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        edge_index, first = coalesce(both, place, reduce="min")
        rows = {name: value[first] for name, value in rows.items()}
    graph = Data(x=x, edge_index=edge_index, **rows)
    if "labels" in entry:
        graph.y = _numbers(entry["labels"], f"{where}: 'labels'", dim=1)
        _check_count(graph.y.numel(), x.size(0), "nodes", f"{where}: 'labels'")
    elif "label" in entry:
        graph.y = _numbers([entry["label"]], f"{where}: 'label'", dim=1)
    if names is not None:
        graph.node_names = names
    return graph


def _names(entry: dict[str, Any], number: int, where: str) -> list[str] | None:
    """Returns the names of the nodes, if they have any, after a check of their number."""
    nodes = entry.get("nodes")
    said = len(nodes) if isinstance(nodes, list) else nodes
    for key, count in (("nodes", said), ("num_nodes", entry.get("num_nodes"))):
        if count is not None and count != number:
            raise DatasetError(f"{where}: '{key}' says {count!r}, but there are {number} rows in 'features'.")
    if not isinstance(nodes, list):
        return None
    names = [str(name) for name in nodes]
    if len(set(names)) < len(names):
        raise DatasetError(f"{where}: two nodes are called '{next(n for n in names if names.count(n) > 1)}'.")
    return names


def _pairs(edges: Any, ids: dict[str, int], what: str) -> Tensor:
    """Reads pairs of ids, or of names, as ``[2, E]``."""
    pairs = edges if isinstance(edges, list) else [edges]
    odd = [pair for pair in pairs if not (isinstance(pair, list) and len(pair) == 2)]
    if odd:
        raise DatasetError(f"{what} must be a list of pairs of ids, as [[0, 1], [1, 2]] (got {str(odd[0])[:60]}).")
    rows = [[ids.get(end, end) if isinstance(end, str) else end for end in pair] for pair in pairs]
    wrong = [end for row in rows for end in row if type(end) is not int or not 0 <= end < 1 << 62]
    if wrong:
        raise DatasetError(f"{what} names {repr(wrong[0])[:40]}, which is no node. Ids are whole numbers from 0 on.")
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 2).t().contiguous()


def _numbers(value: Any, what: str, *, dim: int) -> Tensor:
    """Returns nested lists of numbers as a tensor with ``dim`` dimensions."""
    shape = {1: "a list of numbers", 2: "a list of lists of numbers, all of one length"}[dim]
    try:
        tensor = torch.tensor(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DatasetError(f"{what} must be {shape} ({error}).") from error
    if tensor.dim() != dim and tensor.numel():
        raise DatasetError(f"{what} must be {shape} (got shape {list(tensor.shape)}).")
    return tensor if tensor.numel() else tensor.reshape([0] * dim)


def _check_keys(entry: Iterable[str], known: tuple[str, ...], where: str) -> None:
    for key in entry:
        try:
            one_of("key", key, known)
        except ConfigError as error:
            raise DatasetError(f"{where}: {error}") from error


def _check_count(rows: int, count: int, of: str, what: str) -> None:
    if rows != count:
        raise DatasetError(f"{what} has {rows} rows for {count} {of}.")
