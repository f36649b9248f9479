"""Graphs in files: a dispatch by format, and the one format that we write ourselves.

=================  ====================================================================================================
``.safetensors``   ``x`` [N, F], ``edge_index`` [2, E] and any further tensors, such as ``y``, ``edge_attr`` or
                   ``edge_weight``. Several graphs lie one after the other, told apart by ``batch`` [N] or
                   ``ptr`` [G + 1]. Written by :func:`save_graphs`.
``.npz``           The same names as NumPy arrays: ``numpy.savez(path, x=..., edge_index=...)``.
``.pt``, ``.pth``  ``torch.save`` of a ``Data``, a list of them, or a dictionary of tensors with the names above. Read
                   with ``weights_only=True``: nothing in the file is run.
``.json``          ``{"num_nodes": 3, "edges": [[0, 1], [1, 2]], "features": [[1.0], [0.5], [0.0]]}``, or a list of such
                   graphs; see :mod:`gflowexplainer.sources.json_graphs`.
a folder           All such files in it, in the order of their names, numbers counted as numbers.
=================  ====================================================================================================
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowexplainer.errors import ConfigError, DatasetError
from gflowexplainer.graphs.checks import check_edges
from gflowexplainer.ops.segments import pointers
from gflowexplainer.sources.json_graphs import read_json_graphs
from gflowexplainer.sources.tensor_files import check_written, read_tensors, write_tensors
from gflowexplainer.storage.files import is_file

FORMATS = (".safetensors", ".npz", ".pt", ".pth", ".json")
_REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def load_graphs(path: str | Path) -> list[Data]:
    """Reads one graph or many; see the table at the top of this module for the formats.

    Features that are whole numbers or booleans become float32, edges int64.
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
        graphs = graphs_of_tensors(read_tensors(path), path)
    if not graphs:
        raise DatasetError(f"'{path}' holds no graph.")
    return [_checked(graph, path, number) for number, graph in enumerate(graphs)]


def save_graphs(path: str | Path, graphs: Data | Iterable[Data]) -> Path:
    """Writes one graph or many as safetensors, which :func:`load_graphs` and the command line read.

    Args:
        path: The file, ending in ``.safetensors``; an old one is replaced only by a whole new one.
        graphs: Graphs with the same tensor attributes. Attributes that are no tensors are refused.

    Example:
        >>> save_graphs("graphs.safetensors", [data])  # doctest: +SKIP
    """
    path = Path(path)
    check_written(path)
    given = [graphs] if isinstance(graphs, Data) else list(graphs)
    if not given:
        raise DatasetError("There is no graph to write. Pass at least one.")
    columns: dict[str, list[Tensor]] = {}
    for number, graph in enumerate(given):
        if not isinstance(graph, Data):
            raise DatasetError(f"Graph {number} is a {type(graph).__name__}, not a Data of PyG.")
        for name, value in _checked(graph, path, number).items():
            if not isinstance(value, Tensor) or value.layout != torch.strided:
                raise DatasetError(
                    f"'{name}' of graph {number} is a {type(value).__name__}, which cannot be stored. "
                    f"Make it a dense tensor, or delete it: del data.{name}."
                )
            columns.setdefault(name, []).append(value.detach().cpu())
    uneven = next((name for name, values in columns.items() if len(values) != len(given)), None)
    if uneven is not None:
        raise DatasetError(f"Only {len(columns[uneven])} of {len(given)} graphs have '{uneven}'. All need the same.")
    ptr = pointers(torch.tensor([graph.num_nodes for graph in given]))
    edges = [edge_index + begin for edge_index, begin in zip(columns.pop("edge_index"), ptr.tolist(), strict=False)]
    tensors = {"edge_index": torch.cat(edges, dim=1)}
    if len(given) > 1:
        tensors["ptr"] = ptr
    try:
        for name, values in columns.items():
            rows = [value.reshape(1) if value.dim() == 0 and len(given) > 1 else value for value in values]
            tensors[name] = torch.cat(rows) if len(given) > 1 else rows[0]
    except (RuntimeError, TypeError) as error:
        raise DatasetError(f"'{name}' has another width in some graphs: {error}.") from error
    return write_tensors(path, tensors)


def graphs_of_tensors(tensors: Mapping[str, Tensor], path: Path) -> list[Data]:
    """Makes graphs of flat tensors; several are told apart by ``ptr`` or ``batch``."""
    tensors = dict(tensors)
    for name in ("x", "edge_index"):
        if name not in tensors:
            known = ", ".join(sorted(tensors)) or "nothing"
            raise DatasetError(f"'{path}' has no '{name}' (it holds {known}). Give 'x' [N, F] and 'edge_index' [2, E].")
    ptr, batch = tensors.pop("ptr", None), tensors.pop("batch", None)
    _check_pair(tensors["x"], tensors["edge_index"], path)
    number = tensors["x"].size(0)
    if ptr is None and batch is None:
        return [Data(**tensors)]
    if ptr is None:
        assert batch is not None
        odd = batch.shape != (number,) or batch.is_floating_point()
        if odd or (batch.diff() < 0).any() or (batch < 0).any() or (batch > number).any():
            raise DatasetError(f"'batch' in '{path}' must name the graph of each of the {number} nodes, in order.")
        ptr = pointers(torch.bincount(batch.long()))
    counts = ptr.long().diff()
    if ptr.dim() != 1 or ptr.numel() < 2 or int(ptr[0]) != 0 or int(ptr[-1]) != number or (counts < 0).any():
        raise DatasetError(f"'ptr' in '{path}' must count up from 0 to the {number} nodes, one more entry than graphs.")
    return _cut(tensors, ptr.long(), counts, path)


def _cut(tensors: dict[str, Tensor], ptr: Tensor, counts: Tensor, path: Path) -> list[Data]:
    """Cuts flat tensors into graphs; what has one row a graph, a node or an edge is cut with them."""
    edge_index = tensors["edge_index"].long()
    graph_of = torch.repeat_interleave(torch.arange(counts.numel()), counts)[edge_index]
    if not torch.equal(graph_of[0], graph_of[1]):
        raise DatasetError(f"In '{path}' an edge joins two graphs. Node ids count on from graph to graph.")
    order = torch.argsort(graph_of[0], stable=True)
    number, num_edges = tensors["x"].size(0), edge_index.size(1)
    local = (edge_index - ptr[graph_of])[:, order]
    edges_of = torch.bincount(graph_of[0], minlength=counts.numel()).tolist()
    columns: dict[str, Sequence[Tensor]] = {"edge_index": local.split(edges_of, dim=1)}
    for name, value in tensors.items():
        if name == "edge_index":
            continue
        rows = value.size(0) if value.dim() else -1
        if rows == counts.numel() and (name == "y" or rows not in (number, num_edges)):
            columns[name] = value.split(1)
        elif rows == num_edges and (name.startswith("edge") or rows != number):
            columns[name] = value[order].split(edges_of)
        elif rows == number:
            columns[name] = value.split(counts.tolist())
        else:
            raise DatasetError(
                f"'{name}' in '{path}' has {rows} rows, but there are {counts.numel()} graphs, {number} nodes and "
                f"{num_edges} edges. Give one row for each of one of these."
            )
    return [Data(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _read_torch(path: Path) -> list[Data]:
    """Reads a file of ``torch.save``; of PyG only the classes that a ``Data`` is made of are let in."""
    import pickle

    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

    allowed = [Data, DataEdgeAttr, DataTensorAttr, BaseStorage, EdgeStorage, GlobalStorage, NodeStorage]
    way = (
        "If you trust it, convert it once in Python: gflowexplainer.sources.save_graphs('graphs.safetensors', "
        f"list(torch.load('{path}', weights_only=False)))."
    )
    try:
        with torch.serialization.safe_globals(allowed):
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DatasetError(
            f"'{path}' holds more than a Data, a list of them or a dictionary of tensors, and reading that could run "
            f"foreign code. {way}"
        ) from error
    except Exception as error:
        raise DatasetError(f"'{path}' cannot be read by torch.load ({type(error).__name__}: {error}).") from error
    if isinstance(content, Data):
        return [content]
    if isinstance(content, Mapping) and all(isinstance(value, Tensor) for value in content.values()):
        return graphs_of_tensors(content, path)
    if isinstance(content, list | tuple) and content and all(isinstance(graph, Data) for graph in content):
        return list(content)
    kind = type(content).__name__
    raise DatasetError(f"'{path}' holds a {kind}, not a Data, a list of them or a dictionary of tensors. {way}")


def _check_pair(x: Any, edge_index: Any, path: Path, where: str = "") -> None:
    if not isinstance(x, Tensor) or x.dim() != 2 or x.is_complex() or x.layout != torch.strided:
        got = f"{x.dtype} of shape {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise DatasetError(f"'x'{where} in '{path}' must be numbers of shape [num_nodes, width] (got {got}).")
    if not isinstance(edge_index, Tensor) or edge_index.is_floating_point() or edge_index.is_complex():
        got = str(edge_index.dtype) if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise DatasetError(f"'edge_index'{where} in '{path}' must hold whole numbers (got {got}).")
    try:
        check_edges(edge_index.long(), x.size(0))
    except ValueError as error:
        raise DatasetError(f"'edge_index'{where} in '{path}' is wrong: {error}") from error


def _checked(graph: Data, path: Path, number: int) -> Data:
    """Refuses a graph without features and edges that fit; returns a copy with floats and int64."""
    where = f" of graph {number}"
    for name in ("x", "edge_index"):
        if graph.get(name) is None:
            extra = " Turn 'adj_t' into 'edge_index' first." if "adj_t" in graph else ""
            raise DatasetError(f"'{path}': '{name}'{where} is missing. Every graph needs 'x' and 'edge_index'.{extra}")
    _check_pair(graph.x, graph.edge_index, path, where)
    graph = graph.clone("x") if graph.x.dtype not in _REAL or graph.edge_index.dtype != torch.long else graph
    if graph.x.dtype not in _REAL:
        graph.x = graph.x.float()
    graph.edge_index = graph.edge_index.long()
    return graph


def _natural(path: Path) -> list[tuple[int, str | int]]:
    """Orders ``graph2`` before ``graph10``."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", path.name) if part]
