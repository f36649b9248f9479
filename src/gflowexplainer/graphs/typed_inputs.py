"""What a user passes as a heterogeneous graph: a ``HeteroData``, or dictionaries by type, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import HeteroData

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.checks import check_devices, check_shape
from gflowexplainer.graphs.signature import further_parameters
from gflowexplainer.graphs.typed import EdgeType, TypedGraph

_IDS = ("n_id_dict", "node_id_dict")
"""Arguments that are numbered by us where the user's graph does not have them."""


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
    for name in (parameter.name for parameter in further_parameters(model)):
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
    taken = {parameter.name for parameter in further_parameters(model)}
    numbered = tuple(name for name in _IDS if name in taken and name not in node_values)
    graph = TypedGraph(dict(named), dict(edge_index_dict), node_values, edge_values, shared, numbered)
    check_devices(graph.tensors(), model, graph.device)
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


def _listed(keys: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, keys)) or "none"
