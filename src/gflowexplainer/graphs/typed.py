"""Typed graphs: a heterogeneous graph taken as one flat graph whose nodes and edges carry a type and a row.

Nodes of the first type come first, then those of the second, and so on; edges likewise, relation by relation. Whatever
is cut out of the flat graph remembers type and row of each node and edge, so that dictionaries by type, as the user's
model takes them, can be put together again with the nodes and edges that are left.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.checks import check_shape
from gflowexplainer.ops.devices import device_of

EdgeType = tuple[str, str, str]
NodeId = tuple[str, int]
NODE_TYPE, NODE_ROW, EDGE_TYPE, EDGE_ROW = "node_type", "node_row", "edge_type", "edge_row"
"""Arguments of a flat graph: type of each node and edge, and its row among those of its type."""
COLUMNS = 16
"""Features of a type that the flow network sees; of more, so many random projections."""
_IDS = ("n_id_dict", "node_id_dict")
"""Arguments that are numbered by us where the user's graph does not have them."""


@dataclass(frozen=True)
class TypedGraph:
    """A heterogeneous graph with ``N`` nodes of ``T`` types and ``E`` edges of ``R`` relations.

    Attributes:
        node_counts: Number of nodes of each type, by type.
        edge_index_dict: Edges of each relation, by relation.
        node_values: Arguments of the model by name, then by node type, such as ``x_dict``.
        edge_values: Arguments of the model by name, then by relation, such as ``edge_attr_dict``.
        shared: Arguments that are handed to the model unchanged.
        numbered: Names of arguments that number the nodes of each type.
    """

    node_counts: dict[str, int]
    edge_index_dict: dict[EdgeType, Tensor]
    node_values: dict[str, dict[str, Tensor]]
    edge_values: dict[str, dict[EdgeType, Tensor]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    numbered: tuple[str, ...] = ()

    @cached_property
    def node_types(self) -> tuple[str, ...]:
        """The node types, in the order of the flat graph."""
        return tuple(self.node_counts)

    @cached_property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """The relations, in the order of the flat graph."""
        return tuple(self.edge_index_dict)

    @cached_property
    def node_ptr(self) -> dict[str, int]:
        """First node of each type in the flat graph, by type."""
        return dict(zip(self.node_types, accumulate(self.node_counts.values(), initial=0), strict=False))

    @cached_property
    def edge_ptr(self) -> dict[EdgeType, int]:
        """First edge of each relation in the flat graph, by relation."""
        counts = (edges.size(1) for edges in self.edge_index_dict.values())
        return dict(zip(self.edge_types, accumulate(counts, initial=0), strict=False))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all types."""
        return sum(self.node_counts.values())

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return next(iter(self.edge_index_dict.values())).device

    def span(self, node_type: str) -> slice:
        """Returns where the nodes of a type stand in the flat graph, or says which types there are."""
        if node_type not in self.node_counts:
            raise InstanceError(
                f"The graph has no node type {node_type!r}. Its types are {', '.join(map(repr, self.node_types))}."
            )
        first = self.node_ptr[node_type]
        return slice(first, first + self.node_counts[node_type])

    def name(self, node: int) -> NodeId:
        """Names a node of the flat graph as the user does: its type, and its id among those of that type."""
        for node_type in reversed(self.node_types):
            if node >= self.node_ptr[node_type]:
                return node_type, node - self.node_ptr[node_type]
        raise InstanceError(f"There is no node {node}.")

    def name_edge(self, edge: int) -> tuple[EdgeType, int]:
        """Names an edge of the flat graph: its relation, and its id among the edges of that."""
        for relation in reversed(self.edge_types):
            if edge >= self.edge_ptr[relation]:
                return relation, edge - self.edge_ptr[relation]
        raise InstanceError(f"There is no edge {edge}.")

    def stores(self) -> dict[Any, dict[str, Any]]:
        """Returns the tensors by node type and relation, under the names that they have in a ``HeteroData``."""
        found: dict[Any, dict[str, Any]] = {t: {"num_nodes": count} for t, count in self.node_counts.items()}
        found |= {key: {"edge_index": edges} for key, edges in self.edge_index_dict.items()}
        by_name: list[tuple[str, dict[Any, Tensor]]] = [*self.node_values.items(), *self.edge_values.items()]
        for name, values in by_name:
            for key, value in values.items():
                found[key][name.removesuffix("_dict")] = value
                if name == "x_dict":
                    found[key].pop("num_nodes", None)
        return found

    def detached(self) -> TypedGraph:
        """Cuts the tensors off from any gradient."""
        nodes = {name: {key: v.detach() for key, v in values.items()} for name, values in self.node_values.items()}
        edges = {name: {key: v.detach() for key, v in values.items()} for name, values in self.edge_values.items()}
        shared = {name: v.detach() if isinstance(v, Tensor) else v for name, v in self.shared.items()}
        return TypedGraph(self.node_counts, self.edge_index_dict, nodes, edges, shared, self.numbered)

    def tensors(self) -> dict[str, Tensor]:
        """Returns all tensors by a name of their own."""
        named: dict[str, Tensor] = {f"edge_index {key}": value for key, value in self.edge_index_dict.items()}
        by_name: dict[str, dict[Any, Tensor]] = {**self.node_values, **self.edge_values}
        for name, values in by_name.items():
            named |= {f"{name} {key}": value for key, value in values.items()}
        return named | {name: value for name, value in self.shared.items() if isinstance(value, Tensor)}

    def check_ids(self) -> None:
        """Refuses edges that name nodes which do not exist."""
        for key, edges in self.edge_index_dict.items():
            for row, node_type in ((0, key[0]), (1, key[2])):
                count = self.node_counts[node_type]
                if edges.numel() and not 0 <= int(edges[row].min()) <= int(edges[row].max()) < count:
                    worst = edges[row][(edges[row] < 0) | (edges[row] >= count)][0]
                    raise InstanceError(
                        f"The relation {key!r} names node {int(worst)} of type {node_type!r}, which has {count} nodes. "
                        f"Every id must lie in [0, {count})."
                    )

    def flat_edges(self) -> Tensor:
        """Returns the edges of all relations between nodes of the flat graph, shape ``[2, E]``."""
        parts = [
            edges + edges.new_tensor([[self.node_ptr[source]], [self.node_ptr[target]]])
            for (source, _, target), edges in self.edge_index_dict.items()
        ]
        return parts[0] if len(parts) == 1 and len(self.node_counts) == 1 else torch.cat(parts, dim=1)

    def flat_features(self) -> Tensor:
        """Returns what the flow network is told of each node, shape ``[N, F]``.

        With one type, these are its features. With several, the type of the node as an indicator for each, and at most
        :data:`COLUMNS` columns of its features.
        """
        features = self.node_values.get("x_dict", {})
        if len(self.node_counts) == 1:
            own = features.get(self.node_types[0])
            if own is not None:
                return own
        floats = {t: x.flatten(1) for t, x in features.items() if x.dim() > 1 and x.is_floating_point()}
        width = min(max((x.size(1) for x in floats.values()), default=0), COLUMNS)
        kinds = len(self.node_types) if len(self.node_types) > 1 else 1
        flat = torch.zeros(self.num_nodes, kinds + width, device=self.device)
        for number, node_type in enumerate(self.node_types):
            rows = flat[self.span(node_type)]
            rows[:, number] = 1
            if node_type in floats:
                own = narrow(floats[node_type])
                rows[:, kinds : kinds + own.size(1)] = own
        return flat

    def flat_arguments(self) -> dict[str, Tensor]:
        """Returns type and row of each node and edge of the flat graph, ``[N]`` and ``[E]``."""
        sizes = [edges.size(1) for edges in self.edge_index_dict.values()]
        nodes, edges = list(self.node_counts.values()), sizes
        return {
            NODE_TYPE: _number(nodes, self.device),
            NODE_ROW: torch.cat([torch.arange(count, device=self.device) for count in nodes]),
            EDGE_TYPE: _number(edges, self.device),
            EDGE_ROW: torch.cat([torch.arange(count, device=self.device) for count in edges]),
        }


def flat_list(graphs: list[TypedGraph]) -> tuple[TypedGraph, list[dict[str, Tensor]]]:
    """Puts graphs of the same types together: their rows behind each other, and the flat tensors of each.

    Types and relations that a graph lacks have no rows of it.
    """
    node_types = tuple(dict.fromkeys(t for graph in graphs for t in graph.node_types))
    edge_types = tuple(dict.fromkeys(t for graph in graphs for t in graph.edge_types))
    whole = [_completed(graph.detached(), node_types, edge_types, graphs) for graph in graphs]
    flat = []
    nodes, edges = dict.fromkeys(node_types, 0), dict.fromkeys(edge_types, 0)
    for graph in whole:
        graph.check_ids()
        tensors = {"x": graph.flat_features(), "edge_index": graph.flat_edges(), **graph.flat_arguments()}
        for row, kind, first in ((NODE_ROW, NODE_TYPE, nodes), (EDGE_ROW, EDGE_TYPE, edges)):
            tensors[row] = tensors[row] + torch.tensor(list(first.values()), device=graph.device)[tensors[kind]]
        flat.append(tensors)
        nodes = {key: count + graph.node_counts[key] for key, count in nodes.items()}
        edges = {key: count + graph.edge_index_dict[key].size(1) for key, count in edges.items()}

    def joined(name: str) -> dict[str, dict[Any, Tensor]]:
        parts = [getattr(graph, name) for graph in whole]
        return {
            argument: {key: torch.cat([part[argument][key] for part in parts]) for key in parts[0][argument]}
            for argument in parts[0]
        }

    storage = TypedGraph(
        nodes, whole[0].edge_index_dict, joined("node_values"), joined("edge_values"), graphs[0].shared,
        graphs[0].numbered,
    )  # fmt: skip
    return storage, flat


def _completed(
    graph: TypedGraph, node_types: tuple[str, ...], edge_types: tuple[EdgeType, ...], others: list[TypedGraph]
) -> TypedGraph:
    """Gives a graph all types and relations of others, without nodes and edges where it has none."""

    def like(name: str, argument: str, key: Any) -> Tensor | None:
        found = (getattr(other, name).get(argument, {}).get(key) for other in others)
        some = next((value for value in found if value is not None), None)
        return None if some is None else some[:0].detach()

    def filled(name: str, keys: tuple[Any, ...], counts: Mapping[Any, int]) -> dict[str, dict[Any, Tensor]]:
        arguments = dict.fromkeys(argument for other in others for argument in getattr(other, name))
        result: dict[str, dict[Any, Tensor]] = {}
        for argument in arguments:
            own, result[argument] = getattr(graph, name).get(argument, {}), {}
            for key in keys:
                value = own.get(key, like(name, argument, key))
                if value is None:
                    continue
                if value.size(0) != counts.get(key, 0):
                    raise InstanceError(f"'{argument}' of {key!r} is missing in one of the graphs. Set it in all.")
                result[argument][key] = value
        return result

    sizes = {key: edges.size(1) for key, edges in graph.edge_index_dict.items()}
    none = next(iter(graph.edge_index_dict.values()))[:, :0]
    return TypedGraph(
        {key: graph.node_counts.get(key, 0) for key in node_types},
        {key: graph.edge_index_dict.get(key, none) for key in edge_types},
        filled("node_values", node_types, graph.node_counts),
        filled("edge_values", edge_types, sizes),
        graph.shared,
        graph.numbered,
    )


def narrow(x: Tensor) -> Tensor:
    """Brings features ``[N, F]`` to at most :data:`COLUMNS` columns by a fixed random projection."""
    width = x.size(1)
    if width <= COLUMNS:
        return x.float()
    generator = torch.Generator().manual_seed(width)
    signs = torch.randint(0, 2, (width, COLUMNS), generator=generator).float() * 2 - 1
    return x.float() @ (signs / width**0.5).to(x.device)


def _number(counts: list[int], device: torch.device) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(counts), device=device), torch.tensor(counts, device=device))


def typed_graph(data: HeteroData, model: nn.Module, arguments: Mapping[str, Any]) -> TypedGraph:
    """Takes a ``HeteroData`` apart into what the model's ``forward`` takes by name, and checks it.

    An argument ``NAME_dict`` is filled with the attribute ``NAME`` of all node types, or relations, that have it;
    any other with the attribute of the graph. ``arguments`` go before both.
    """
    counts: dict[str, Any] = {node_type: data[node_type].num_nodes for node_type in data.node_types}
    for node_type, count in counts.items():
        if count is None:
            raise InstanceError(
                f"The number of nodes of type {node_type!r} is not known. Set 'x' or 'num_nodes' of that type."
            )
    edges = {key: data[key].get("edge_index") for key in data.edge_types}
    edges = {key: value for key, value in edges.items() if value is not None}
    given: dict[str, Any] = {"x_dict": {t: data[t]["x"] for t in data.node_types if "x" in data[t]}}
    for name in _parameters(model):
        if name in ("batch", "batch_dict", "batch_size", "edge_label_index", "edge_label_index_dict"):
            continue
        if name.endswith("_dict"):
            attribute = name.removesuffix("_dict")
            of_nodes = {t: data[t][attribute] for t in data.node_types if attribute in data[t]}
            found = of_nodes or {r: data[r][attribute] for r in data.edge_types if attribute in data[r]}
            if found:
                given[name] = found
        elif name in data._global_store and isinstance(data._global_store[name], Tensor):
            given[name] = data._global_store[name]
    given |= arguments
    return checked_graph(given.pop("x_dict"), edges, given, model, counts)


def checked_graph(
    x_dict: Any,
    edge_index_dict: Any,
    arguments: Mapping[str, Any],
    model: nn.Module,
    counts: Mapping[str, int] | None = None,
) -> TypedGraph:
    """Makes a typed graph of dictionaries, as a heterogeneous model of PyG takes them, or says what is wrong.

    Args:
        x_dict: Features by node type.
        edge_index_dict: Edges by relation.
        arguments: Further arguments of the model: dictionaries by node type or by relation, or anything else.
        model: The model, which everything has to be on the same device with.
        counts: Number of nodes of each type, where it is known; otherwise features or other arguments say it.
    """
    if not isinstance(x_dict, Mapping) or not isinstance(edge_index_dict, Mapping):
        raise InstanceError(
            "A heterogeneous graph is passed as two dictionaries, features by node type and edges by relation "
            f"(got {type(x_dict).__name__} and {type(edge_index_dict).__name__})."
        )
    if len(edge_index_dict) == 0:
        raise InstanceError("The graph has no relation. Pass the edges of at least one.")
    named = _counts(x_dict, arguments, counts)
    node_values: dict[str, dict[str, Tensor]] = {"x_dict": _by_key("x_dict", x_dict, named)}
    for key, edges in edge_index_dict.items():
        _check_relation(key, edges, named)
    sizes = {key: edges.size(1) for key, edges in edge_index_dict.items()}
    edge_values: dict[str, dict[EdgeType, Tensor]] = {}
    shared: dict[str, Any] = {}
    for name, value in arguments.items():
        if not isinstance(value, Mapping):
            shared[name] = value
        elif any(key in sizes for key in value):
            edge_values[name] = _by_key(name, value, sizes)
        else:
            node_values[name] = _by_key(name, value, named)
    numbered = tuple(name for name in _IDS if name in _parameters(model) and name not in node_values)
    graph = TypedGraph(dict(named), dict(edge_index_dict), node_values, edge_values, shared, numbered)
    _check_devices(graph, model)
    return graph


def _counts(
    x_dict: Mapping[str, Any], arguments: Mapping[str, Any], counts: Mapping[str, int] | None
) -> dict[str, int]:
    """Finds the number of nodes of each type."""
    known = {} if counts is None else dict(counts)
    of_nodes = [value for value in arguments.values() if isinstance(value, Mapping)]
    for values in (x_dict, *of_nodes):
        for key, value in values.items():
            if isinstance(key, str) and isinstance(value, Tensor) and value.dim() and key not in known:
                if counts is not None:
                    raise InstanceError(f"The graph has no node type {key!r}. Its types are {_listed(known)}.")
                known[key] = value.size(0)
    if sum(known.values()) == 0:
        raise InstanceError("There is nothing to explain: the graph has no nodes.")
    return known


def _by_key(name: str, values: Mapping[Any, Any], sizes: Mapping[Any, int]) -> dict[Any, Tensor]:
    """Checks a dictionary of tensors by type: known keys, one row a node or an edge."""
    for key, value in values.items():
        if key not in sizes:
            raise InstanceError(
                f"'{name}' has the key {key!r}, which the graph has not. Its keys are {_listed(sizes)}."
            )
        if not isinstance(value, Tensor) or value.dim() == 0 or value.size(0) != sizes[key]:
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InstanceError(f"'{name}' of {key!r} must be a tensor with {sizes[key]} rows (got {got}).")
    return dict(values)


def _check_relation(key: Any, edges: Any, counts: Mapping[str, int]) -> None:
    """Refuses a relation that is not named by three strings or joins undeclared types; reads no edges."""
    if not isinstance(key, tuple) or len(key) != 3 or not all(isinstance(part, str) for part in key):
        raise InstanceError(f"A relation is named by (source type, relation, target type) (got {key!r}).")
    for node_type in (key[0], key[2]):
        if node_type not in counts:
            raise InstanceError(
                f"The relation {key!r} names the node type {node_type!r}, of which nothing is known (known are "
                f"{_listed(counts)}). Pass its features, or 'n_id_dict' if it has none."
            )
    check_shape(edges, f"relation {key!r}")


def _check_devices(graph: TypedGraph, model: nn.Module) -> None:
    """Refuses a graph that is not where the model is."""
    if not isinstance(model, nn.Module):
        return
    device = device_of(model, graph.device)
    for name, value in graph.tensors().items():
        if value.device != device:
            raise InstanceError(f"'{name}' is on {value.device}, but the model on {device}. Move one of them.")


def _listed(keys: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, keys)) or "none"


def _parameters(model: nn.Module) -> list[str]:
    """Names what the model's ``forward`` takes after features and edges."""
    if not isinstance(model, nn.Module):
        return []
    parameters = list(inspect.signature(model.forward).parameters.values())[2:]
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
