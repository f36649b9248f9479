"""Graphs as flat tensors by name, and what is refused of them: the form that graphs have in files.

Several plain graphs lie one after the other. Of a heterogeneous graph a name says which type or relation it is of:
``NAME__TYPE`` or ``NAME__SOURCE__RELATION__TARGET``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gflowexplainer.errors import DatasetError
from gflowexplainer.graphs.checks import check_edges, check_shape
from gflowexplainer.ops.memory import free_memory
from gflowexplainer.ops.segments import pointers

APART = "__"
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def graphs_of_tensors(tensors: Mapping[str, Tensor], where: str) -> list[Any]:
    """Makes graphs of flat tensors; ``where`` names the file in messages."""
    if any(APART in name for name in tensors):
        return [_typed_graph(tensors, where)]
    tensors = dict(tensors)
    for name in ("x", "edge_index"):
        if name not in tensors:
            known = ", ".join(sorted(tensors)) or "nothing"
            raise DatasetError(f"{where} has no '{name}' (it holds {known}). Give 'x' [N, F] and 'edge_index' [2, E].")
    ptr, batch = tensors.pop("ptr", None), tensors.pop("batch", None)
    if ptr is None and batch is None:
        return [Data(**tensors)]
    checked(Data(**tensors), f" in {where}")
    number = tensors["x"].size(0)
    if ptr is None:
        assert batch is not None
        odd = batch.shape != (number,) or batch.is_floating_point()
        if odd or (batch.diff() < 0).any() or (batch < 0).any() or (batch > number).any():
            raise DatasetError(f"'batch' in {where} must name the graph of each of the {number} nodes, in order.")
        ptr = pointers(torch.bincount(batch.long()))
    counts = ptr.long().diff()
    if ptr.dim() != 1 or ptr.numel() < 2 or int(ptr[0]) != 0 or int(ptr[-1]) != number or (counts < 0).any():
        raise DatasetError(f"'ptr' in {where} must count up from 0 to the {number} nodes, one more entry than graphs.")
    return _cut(tensors, ptr.long(), counts, where)


def _cut(tensors: dict[str, Tensor], ptr: Tensor, counts: Tensor, where: str) -> list[Data]:
    """Cuts flat tensors into graphs; what has one row a graph, a node or an edge is cut with them."""
    edge_index = tensors["edge_index"].long()
    graph_of = torch.repeat_interleave(torch.arange(counts.numel()), counts)[edge_index]
    if not torch.equal(graph_of[0], graph_of[1]):
        raise DatasetError(f"In {where} an edge joins two graphs. Node ids count on from graph to graph.")
    order = torch.argsort(graph_of[0], stable=True)
    number, num_edges = tensors["x"].size(0), edge_index.size(1)
    edges_of = torch.bincount(graph_of[0], minlength=counts.numel()).tolist()
    columns: dict[str, Sequence[Tensor]] = {"edge_index": (edge_index - ptr[graph_of])[:, order].split(edges_of, dim=1)}
    for name, value in tensors.items():
        rows = value.size(0) if value.dim() else -1
        if name == "edge_index":
            continue
        if rows == counts.numel() and (name == "y" or rows not in (number, num_edges)):
            columns[name] = value.split(1)
        elif rows == num_edges and (name.startswith("edge") or rows != number):
            columns[name] = value[order].split(edges_of)
        elif rows == number:
            columns[name] = value.split(counts.tolist())
        else:
            raise DatasetError(
                f"'{name}' in {where} has {rows} rows, but there are {counts.numel()} graphs, {number} nodes and "
                f"{num_edges} edges. Give one row for each of one of these."
            )
    return [Data(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _typed_graph(tensors: Mapping[str, Tensor], where: str) -> HeteroData:
    graph = HeteroData()
    for name, value in tensors.items():
        attribute, *key = name.split(APART)
        if len(key) not in (1, 3) or not all((attribute, *key)):
            raise DatasetError(
                f"{where} holds '{name}'. Names are NAME__TYPE, as x__user, or NAME__SOURCE__RELATION__TARGET, as "
                "edge_index__user__buys__item."
            )
        store = graph[key[0] if len(key) == 1 else tuple(key)]
        store[attribute] = _count(value, f"'{name}' in {where}") if attribute == "num_nodes" else value
    if not graph.node_types or not graph.edge_types:
        raise DatasetError(
            f"{where} has no types or no relations. Give x__TYPE and edge_index__SOURCE__RELATION__TARGET."
        )
    return graph


def _count(value: Tensor, what: str) -> int:
    whole = value.numel() == 1 and value.dtype in _WHOLE
    count = int(value) if whole else -1
    if count < 0:
        raise DatasetError(f"{what} must be a number of nodes (got {value.tolist()}).")
    if 8 * count > free_memory(torch.device("cpu")):
        raise DatasetError(f"{what} says {count} nodes, which is more than memory holds.")
    return count


def tensors_of_graphs(graphs: Sequence[Any]) -> dict[str, Tensor]:
    """Returns graphs as flat tensors; attributes that are no tensors are refused."""
    if not graphs:
        raise DatasetError("There is no graph to write. Pass at least one.")
    if isinstance(graphs[0], HeteroData):
        if len(graphs) > 1:
            raise DatasetError(f"One file holds one heterogeneous graph (got {len(graphs)}). Write one file for each.")
        return _named(graphs[0])
    columns: dict[str, list[Tensor]] = {}
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise DatasetError(f"Graph {number} is a {type(graph).__name__}, not a Data of PyG.")
        for name, value in checked(graph, f" of graph {number}").items():
            columns.setdefault(name, []).append(_dense(value, name, f"graph {number}"))
    uneven = next((name for name, values in columns.items() if len(values) != len(graphs)), None)
    if uneven is not None:
        raise DatasetError(f"Only {len(columns[uneven])} of {len(graphs)} graphs have '{uneven}'. All need the same.")
    if len(graphs) == 1:
        return {name: value for name, (value,) in columns.items()}
    ptr = pointers(torch.tensor([graph.num_nodes for graph in graphs]))
    edges = [edge_index + begin for edge_index, begin in zip(columns.pop("edge_index"), ptr.tolist(), strict=False)]
    tensors = {"edge_index": torch.cat(edges, dim=1), "ptr": ptr}
    for name, values in columns.items():
        try:
            tensors[name] = torch.cat([value.reshape(1) if value.dim() == 0 else value for value in values])
        except (RuntimeError, TypeError) as error:
            raise DatasetError(f"'{name}' has another width in some graphs: {error}.") from error
    return tensors


def _named(graph: HeteroData) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for store in (*graph.node_stores, *graph.edge_stores):
        key = store._key if isinstance(store._key, tuple) else (store._key,)
        if any(APART in part for part in key):
            raise DatasetError(f"The name {store._key!r} holds '{APART}', which stands between names in a file.")
        more = {"num_nodes": torch.tensor(store.num_nodes)} if len(key) == 1 and "x" not in store else {}
        for name, value in {**dict(store.items()), **more}.items():
            tensors[APART.join((name, *key))] = _dense(value, name, " ".join(key))
    return tensors


def _dense(value: Any, name: str, owner: str) -> Tensor:
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        raise DatasetError(
            f"'{name}' of {owner} is a {type(value).__name__}, which cannot be stored. "
            f"Make it a dense tensor, or delete it: del data.{name}."
        )
    return value.detach().cpu()


def checked(graph: Any, where: str) -> Any:
    """Refuses features and edges that do not fit together; returns a copy with real features and edges of int64.

    Args:
        graph: A ``Data`` or a ``HeteroData``; the former is taken as a graph of one type and one relation.
        where: What messages add to a name, as `` of graph 3 in 'graphs.npz'``.
    """
    graph, plain = copy.copy(graph), isinstance(graph, Data)
    counts: dict[Any, int] = {}
    for store in graph.node_stores:
        of = where if plain else f" of '{store._key}'{where}"
        x = store.get("x")
        if x is None and (plain or "num_nodes" not in store):
            extra = " Turn 'adj_t' into 'edge_index' first." if "adj_t" in store else ""
            needed = "'x' and 'edge_index'" if plain else f"'x__{store._key}' or 'num_nodes__{store._key}'"
            raise DatasetError(f"'x'{of} is missing. Give {needed}.{extra}")
        if x is not None:
            if not isinstance(x, Tensor) or x.dim() != 2 or x.is_complex() or x.layout != torch.strided:
                got = f"{x.dtype} of shape {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
                raise DatasetError(f"'x'{of} must be numbers of shape [num_nodes, width] (got {got}).")
            store.x = x if x.dtype in _REAL else x.float()
        counts[store._key] = store.num_nodes if x is None else x.size(0)
    for store in graph.edge_stores:
        of, ends = (where, (None, None)) if plain else (f" of {' '.join(store._key)}{where}", store._key[::2])
        edges = store.get("edge_index")
        if edges is None:
            raise DatasetError(f"'edge_index'{of} is missing (there is {', '.join(map(str, store.keys()))}).")
        if (
            not isinstance(edges, Tensor)
            or edges.is_floating_point()
            or edges.is_complex()
            or edges.dtype == torch.bool
        ):
            got = str(edges.dtype) if isinstance(edges, Tensor) else type(edges).__name__
            raise DatasetError(f"'edge_index'{of} must hold whole numbers [2, E] (got {got}).")
        store.edge_index = edges = edges.long()
        for row, kind in enumerate(ends):
            if kind not in counts:
                raise DatasetError(f"'edge_index'{of} joins '{kind}', of which there are no nodes. Give x__{kind}.")
            owner = "the graph" if plain else f"'{kind}'"
            try:
                check_shape(edges, owner)
                check_edges(edges[row].expand(2, -1), counts[kind], owner)
            except ValueError as error:
                raise DatasetError(f"'edge_index'{of} is wrong: {error}") from error
        for name, value in {} if plain else store.items():
            if name != "edge_index" and value.dim() and value.size(0) != edges.size(1):
                raise DatasetError(f"'{name}'{of} has {value.size(0)} rows for {edges.size(1)} edges.")
    return graph
