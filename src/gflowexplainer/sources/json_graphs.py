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

A list of such graphs, or ``{"graphs": [...]}``, holds many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from gflowexplainer.errors import ConfigError, DatasetError, one_of
from gflowexplainer.sources.tensor_files import number_tensor, read_json

KEYS = ("nodes", "num_nodes", "edges", "features", "undirected", "labels", "label", "edge_features", "edge_weights")


def read_json_graphs(path: Path) -> list[Data]:
    """Reads the graphs of a JSON file; names of nodes are kept as ``names``."""
    content = read_json(path)
    if isinstance(content, dict) and set(content) == {"graphs"}:
        content = content["graphs"]
    entries = content if isinstance(content, list) else [content]
    return [_graph(entry, f"Graph {number} in '{path}'") for number, entry in enumerate(entries)]


def _graph(entry: Any, where: str) -> Data:
    if not isinstance(entry, dict):
        raise DatasetError(f'{where} is a {type(entry).__name__}. Write {{"edges": [...], "features": [...]}}.')
    for key in entry:
        try:
            one_of("key", key, KEYS)
        except ConfigError as error:
            raise DatasetError(f"{where}: {error}") from error
    for key in ("edges", "features"):
        if key not in entry:
            raise DatasetError(f"{where} has no '{key}'. Give 'edges' and 'features', one list of numbers a node.")
    x = number_tensor(entry["features"], f"{where}: 'features'", dim=2).float()
    names = _names(entry, x.size(0), where)
    edge_index = _edges(entry["edges"], names, x.size(0), where)
    data: dict[str, Any] = {"x": x}
    for key, target, dim in (("edge_features", "edge_attr", 2), ("edge_weights", "edge_weight", 1)):
        if key in entry:
            rows = number_tensor(entry[key], f"{where}: '{key}'", dim=dim).float()
            if rows.size(0) != edge_index.size(1):
                raise DatasetError(f"{where}: '{key}' has {rows.size(0)} rows for {edge_index.size(1)} edges.")
            data[target] = rows
    undirected = entry.get("undirected", True)
    if not isinstance(undirected, bool):
        raise DatasetError(f"{where}: 'undirected' must be true or false (got {undirected!r}).")
    if undirected:
        edge_index, data = _both_ways(edge_index, data)
    data["edge_index"] = edge_index
    if "labels" in entry:
        data["y"] = number_tensor(entry["labels"], f"{where}: 'labels'", dim=1)
        if data["y"].numel() != x.size(0):
            raise DatasetError(f"{where}: 'labels' has {data['y'].numel()} entries for {x.size(0)} nodes.")
    elif "label" in entry:
        data["y"] = number_tensor([entry["label"]], f"{where}: 'label'", dim=1)
    graph = Data(**data)
    if names is not None:
        graph.names = names
    return graph


def _names(entry: dict[str, Any], number: int, where: str) -> list[str] | None:
    """Returns the names of the nodes, if they have any, after a check of their number."""
    nodes = entry.get("nodes")
    for key, count in (
        ("nodes", len(nodes) if isinstance(nodes, list) else nodes),
        ("num_nodes", entry.get("num_nodes")),
    ):
        if count is not None and count != number:
            raise DatasetError(f"{where}: '{key}' says {count!r}, but there are {number} rows in 'features'.")
    if not isinstance(nodes, list):
        return None
    names = [str(name) for name in nodes]
    if len(set(names)) < len(names):
        raise DatasetError(f"{where}: two nodes are called '{next(n for n in names if names.count(n) > 1)}'.")
    return names


def _edges(edges: Any, names: list[str] | None, number: int, where: str) -> Tensor:
    if not isinstance(edges, list) or not all(isinstance(edge, list) and len(edge) == 2 for edge in edges):
        odd = next((e for e in edges if not (isinstance(e, list) and len(e) == 2)), edges) if edges else edges
        raise DatasetError(f"{where}: 'edges' must be a list of pairs, as [[0, 1], [1, 2]] (got {str(odd)[:60]}).")
    ids = {name: number for number, name in enumerate(names or [])}
    rows = []
    for edge in edges:
        row: list[Any] = [ids.get(end, end) if isinstance(end, str) else end for end in edge]
        wrong = [end for end in row if type(end) is not int or not 0 <= end < number]
        if wrong:
            raise DatasetError(
                f"{where}: the edge {str(edge)[:60]} names {repr(wrong[0])[:40]}, which is no node. Ids lie in "
                f"[0, {number})."
            )
        rows.append(row)
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 2).t().contiguous()


def _both_ways(edge_index: Tensor, data: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
    """Adds the other direction of every edge; one that is written twice counts once, with its first features."""
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    place = torch.arange(edge_index.size(1)).repeat(2)
    both, first = coalesce(both, place, num_nodes=data["x"].size(0), reduce="min")
    return both, {name: value[first] if name in ("edge_attr", "edge_weight") else value for name, value in data.items()}
