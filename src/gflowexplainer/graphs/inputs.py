"""Graphs as the user hands them over: taken apart, checked once, and refused where they cannot be explained at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import BaseData

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.checks import check_devices, check_edges, check_features, check_parts, check_shape
from gflowexplainer.graphs.signature import argument_names, missing_arguments
from gflowexplainer.graphs.typed import TypedGraph, flat_tensors

CARRIED = "adjacency_weight"
"""Values of an adjacency matrix that edges were read off from; they go along with the edges."""
_OF_EDGES = ("edge_weight", "edge_attr", "edge_type")
"""Arguments that have one row an edge, as PyG names them."""
Value = TypeVar("Value")


@dataclass(frozen=True)
class InputGraph:
    """One graph as the user handed it over.

    Attributes:
        x: Node features, shape ``[N, F]``.
        edge_index: Edges, shape ``[2, E]``.
        arguments: What else the model is called with on this graph.
        nodes: Where its nodes lie in the graph that is shown, shape ``[N]``; ``None`` if that is this one.
        edges: The same for its edges, shape ``[E]``.
        shown: The graph that is shown, if it is another.
        typed: The heterogeneous graph that this one is the flat form of, if there is one.
    """

    x: Tensor
    edge_index: Tensor
    arguments: dict[str, Any]
    nodes: Tensor | None = None
    edges: Tensor | None = None
    shown: InputGraph | None = None
    typed: TypedGraph | None = None

    def detached(self) -> InputGraph:
        """Cuts the tensors off from any gradient, which is none of ours to fill."""
        return self._with_each(Tensor.detach)

    def on_cpu(self) -> InputGraph:
        """Copies the tensors to the CPU; the graph that is shown stays where it is."""
        nodes, edges = (None if place is None else place.cpu() for place in (self.nodes, self.edges))
        return replace(self._with_each(Tensor.cpu), nodes=nodes, edges=edges, shown=self.shown or self)

    def _with_each(self, change: Callable[[Tensor], Tensor]) -> InputGraph:
        """Changes every tensor that the model is given."""
        arguments = {name: change(v) if isinstance(v, Tensor) else v for name, v in self.arguments.items()}
        return replace(self, x=change(self.x), edge_index=change(self.edge_index), arguments=arguments)

    def given(self) -> dict[str, Any]:
        """Returns everything that the model is given of this graph, by the name of the argument."""
        if self.typed is not None:
            return {**self.typed.tensors(), **self.typed.shared}
        return {"x": self.x, "edge_index": self.edge_index, **self.arguments}

    def sorted_arguments(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tells the arguments with one row a node or an edge from those that are handed on unchanged."""
        rows = {name: value for name, value in self.arguments.items() if self._rows(name) is not None}
        return rows, {name: value for name, value in self.arguments.items() if name not in rows}

    def _rows(self, name: str) -> str | None:
        return rows_of(name, self.arguments[name], self.x.size(0), self.edge_index.size(1))

    def split(self, batch: Any) -> list[InputGraph]:
        """Takes a disjoint union of graphs apart; ``batch`` ``[N]`` names the graph of each node."""
        if not isinstance(batch, Tensor) or batch.shape != (self.x.size(0),) or batch.dtype != torch.long:
            got = f"{batch.dtype} of shape {tuple(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
            raise InstanceError(f"'batch' must be an int64 tensor with one entry a node (got {got}).")
        number, owner = torch.unique(batch, return_inverse=True)
        count = number.numel()
        if count == 1:
            return [self]
        check_edges(self.edge_index, self.x.size(0))
        source, target = owner[self.edge_index]
        if not torch.equal(source, target):
            raise InstanceError("'batch' says that an edge joins two graphs. Pass a disjoint union.")
        kinds = {name: self._rows(name) for name in self.arguments}
        for name, value in self.arguments.items():
            if kinds[name] is None and isinstance(value, Tensor) and value.dim() and value.size(0) == count:
                raise InstanceError(
                    f"'{name}' seems to hold one row a graph, which is not supported. Pass it one row a node."
                )
        place = torch.empty_like(owner)
        parts = []
        for nodes, edges in zip(_members(owner, count), _members(source, count), strict=True):
            place[nodes] = torch.arange(nodes.numel(), device=owner.device)
            arguments = {
                name: value if kinds[name] is None else value[nodes if kinds[name] == "node" else edges]
                for name, value in self.arguments.items()
            }
            parts.append(InputGraph(self.x[nodes], place[self.edge_index[:, edges]], arguments, nodes, edges))
        return parts


def without_batch(graph: InputGraph) -> list[InputGraph]:
    """Takes a disjoint union apart as its argument ``batch`` says; the model is given a ``batch`` of our own."""
    arguments = dict(graph.arguments)
    batch = arguments.pop("batch", None)
    bare = replace(graph, arguments=arguments)
    # What is shown is what the user passed, 'batch' included.
    return [bare] if batch is None else [replace(part, shown=graph) for part in bare.split(batch)]


def _members(owner: Tensor, count: int) -> tuple[Tensor, ...]:
    """Lists the positions of each of ``count`` owners, ascending, given the owner of every position."""
    return torch.argsort(owner, stable=True).split(torch.bincount(owner, minlength=count).tolist())


class DeferredList(Sequence[Value]):
    """Values in a row, each of them computed whenever it is asked for, and not kept.

    Args:
        count: How many there are.
        compute: Computes the one at a position in ``[0, count)``.
    """

    def __init__(self, count: int, compute: Callable[[int], Value]) -> None:
        self._count, self._compute = count, compute

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Value: ...

    @overload
    def __getitem__(self, place: slice) -> list[Value]: ...

    def __getitem__(self, place: int | slice) -> Value | list[Value]:
        # A range says what positions and slices mean, and refuses what is not there.
        places = range(self._count)[place]
        return self._compute(places) if isinstance(places, int) else [self._compute(one) for one in places]


def listed(data: Any) -> Sequence[Any]:
    """Lists one graph, or several: a list or dataset as it is, a batch so that a graph is taken out when asked for.

    Of batches, as a ``DataLoader`` returns them, all graphs are listed.
    """
    if isinstance(data, Batch):
        return DeferredList(data.num_graphs, data.get_example)
    if isinstance(data, BaseData):
        return [data]
    no_list = Mapping | Tensor | np.ndarray
    found: Sequence[Any] = data
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__") or isinstance(data, no_list):
        try:
            found = list(data)
        except TypeError:
            return [data]
    if len(found) and isinstance(found[0], Batch):
        return [graph for part in found for graph in listed(part)]
    return found


def input_graphs(
    data: Any, model: nn.Module, arguments: dict[str, Any], device: torch.device | None = None
) -> Sequence[InputGraph]:
    """Takes what :meth:`GFlowExplainer.fit` accepts as data apart into graphs; see :func:`input_graph`.

    Each is looked at when it is asked for: one of thousands costs no more than one.
    """
    if isinstance(data, list | tuple) and len(data) and isinstance(data[0], Tensor):
        raise InstanceError(
            f"'data' must be a Data or HeteroData of PyG, or a list or dataset of one of them (got a "
            f"{type(data).__name__} of tensors). Put them together: Data(x=x, edge_index=edge_index)."
        )
    graphs = listed(data)
    alone = isinstance(data, Data) and not isinstance(data, Batch)

    def one(number: int) -> InputGraph:
        graph, where = graphs[number], "the graph" if alone else f"graph {number}"
        if not isinstance(graph, Data):
            raise InstanceError(
                f"'data' must be a Data or HeteroData of PyG, or a list or dataset of one of them "
                f"(got {type(graph).__name__})."
            )
        check_parts(graph, where)
        batch = graph.get("batch")
        if isinstance(batch, Tensor) and bool((batch != batch[:1]).any()):
            raise InstanceError(
                f"'batch' of {where} names several graphs, and explained together they would be taken for one. Pass "
                "them as a list, or as a Batch."
            )
        own = {
            name: graph[name]
            for name in [*argument_names(model, graph), CARRIED]
            if name in graph and isinstance(graph[name], Tensor) and name not in ("batch", "batch_size")
        }
        missing = missing_arguments(model, own | arguments)
        if missing:
            raise InstanceError(
                f"{type(model).__name__} needs '{missing[0]}', which {where} does not have. Set it on the graph, or "
                f"pass {missing[0]}=... ."
            )
        return input_graph(graph.x, graph.edge_index, own | arguments, model, device, where)

    return DeferredList(len(graphs), one)


def input_graph(
    x: Any,
    edge_index: Any,
    arguments: Mapping[str, Any],
    model: nn.Module,
    device: torch.device | None = None,
    where: str = "the graph",
) -> InputGraph:
    """Checks what cannot be explained at all, and that everything is where the model is; reads no tensor.

    The model is on ``device``, where that is known already; ``where`` names the graph in messages.
    """
    check_features(x)
    check_shape(edge_index)
    for name in _OF_EDGES:
        value = arguments.get(name)
        # A single row may be meant for all edges.
        if isinstance(value, Tensor) and value.dim() > 0 and value.size(0) not in (1, edge_index.size(1)):
            raise InstanceError(
                f"'{name}' has {value.size(0)} rows, but {where} has {edge_index.size(1)} edges. Pass one row an edge."
            )
    if arguments.get("batch_size") is not None:
        raise InstanceError("'batch_size' cannot be passed: the model is evaluated on many subgraphs at once.")
    check_devices({"x": x, "edge_index": edge_index, **arguments}, model, x.device if device is None else device)
    return InputGraph(x, edge_index, dict(arguments))


def flat_graph(typed: TypedGraph, flat: Mapping[str, Tensor] | None = None) -> InputGraph:
    """Returns the flat form of a heterogeneous graph; ``flat`` holds its tensors where they are known already."""
    arguments = flat_tensors(typed) if flat is None else dict(flat)
    return InputGraph(arguments.pop("x"), arguments.pop("edge_index"), arguments, typed=typed)


def rows_of(name: str, value: object, num_nodes: int, num_edges: int) -> str | None:
    """Returns whether an argument of the model has one row a ``"node"``, one an ``"edge"``, or neither (``None``).

    Where a graph has as many nodes as edges, a name that begins with "edge" decides.
    """
    rows = value.size(0) if isinstance(value, Tensor) and value.dim() > 0 else -1
    if rows == num_edges and (name.startswith("edge") or rows != num_nodes):
        return "edge"
    return "node" if rows == num_nodes else None


def slice_arguments(
    arguments: Mapping[str, Any], num_nodes: int, num_edges: int, node_id: Tensor, edge_id: Tensor
) -> dict[str, Any]:
    """Sorts arguments of the model into per-node, per-edge and shared ones, and cuts the first two."""
    sorted_out: dict[str, dict[str, Any]] = {"node_arguments": {}, "edge_arguments": {}, "shared_arguments": {}}
    for name, value in arguments.items():
        kind = rows_of(name, value, num_nodes, num_edges)
        part = {"node": node_id, "edge": edge_id}.get(kind or "")
        sorted_out[f"{kind or 'shared'}_arguments"][name] = value if part is None else value[part]
    return sorted_out


def join_arguments(
    graphs: Sequence[Data], names: Sequence[str], node_counts: list[int], edge_counts: list[int]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Puts the arguments ``names`` of graphs behind each other: those with one row a node, those with one an edge."""
    node_arguments, edge_arguments = {}, {}
    for name in names:
        values: list[Any] = [getattr(graph, name, None) for graph in graphs]
        rows = [value.size(0) if isinstance(value, Tensor) and value.dim() else -1 for value in values]
        if rows == edge_counts and (name.startswith("edge") or rows != node_counts):
            edge_arguments[name] = torch.cat(values)
        elif rows == node_counts:
            node_arguments[name] = torch.cat(values)
        else:
            fits = zip(rows, node_counts, edge_counts, strict=True)
            number = next((i for i, (row, n, e) in enumerate(fits) if row not in (n, e)), 0)
            got = "no such tensor" if rows[number] < 0 else f"{rows[number]} rows"
            raise InstanceError(
                f"'{name}' must be a tensor with one row a node, or one row an edge, in every graph "
                f"(graph {number} has {node_counts[number]} nodes, {edge_counts[number]} edges and {got})."
            )
    return node_arguments, edge_arguments
