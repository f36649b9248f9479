"""Typed graphs: a heterogeneous graph taken as one flat graph whose nodes and edges carry a type and a row.

Nodes of the first type come first, then those of the second, and so on; edges likewise, relation by relation. Whatever
is cut out of the flat graph remembers type and row of each node and edge, so that dictionaries by type, as the user's
model takes them, can be put together again with the nodes and edges that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.ops.segments import ranges

EdgeType = tuple[str, str, str]
NodeId = tuple[str, int]
NODE_TYPE, NODE_ROW, EDGE_TYPE, EDGE_ROW = "node_type", "node_row", "edge_type", "edge_row"
"""Arguments of a flat graph: type of each node and edge, and its row among those of its type."""
COLUMNS = 16
"""Features of a type that the flow network sees; of more, so many random projections."""


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
        return _place(self.node_ptr, node)

    def name_edge(self, edge: int) -> tuple[EdgeType, int]:
        """Names an edge of the flat graph: its relation, and its id among the edges of that."""
        return _place(self.edge_ptr, edge)

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

        def free(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: free(each) for key, each in value.items()}
            return value.detach() if isinstance(value, Tensor) else value

        values = {name: free(getattr(self, name)) for name in ("node_values", "edge_values", "shared")}
        return replace(self, **values)

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
        nodes = torch.tensor(list(self.node_counts.values()), device=self.device)
        edges = torch.tensor([each.size(1) for each in self.edge_index_dict.values()], device=self.device)
        node_type, node_row = ranges(torch.zeros_like(nodes), nodes)
        edge_type, edge_row = ranges(torch.zeros_like(edges), edges)
        return {NODE_TYPE: node_type, NODE_ROW: node_row, EDGE_TYPE: edge_type, EDGE_ROW: edge_row}


def _place(first: Mapping[Any, int], position: int) -> tuple[Any, int]:
    """Finds the section that a position lies in, of sections that begin at ``first``, and where in it."""
    key = next(key for key in reversed(first) if position >= first[key])
    return key, position - first[key]


def flat_tensors(typed: TypedGraph) -> dict[str, Tensor]:
    """Computes the tensors of the flat form of a heterogeneous graph."""
    typed.check_ids()
    free = typed.detached()
    return {"x": free.flat_features(), "edge_index": free.flat_edges(), **free.flat_arguments()}


def flat_list(graphs: list[TypedGraph]) -> tuple[TypedGraph, list[dict[str, Tensor]]]:
    """Puts graphs of the same types together: their rows behind each other, and the flat tensors of each.

    Types and relations that a graph lacks have no rows of it.
    """
    node_types = dict.fromkeys(t for graph in graphs for t in graph.node_types)
    none = {key: edges[:, :0] for graph in graphs for key, edges in graph.edge_index_dict.items()}
    whole = [
        replace(
            graph.detached(),
            node_counts={key: graph.node_counts.get(key, 0) for key in node_types},
            edge_index_dict={key: graph.edge_index_dict.get(key, edges) for key, edges in none.items()},
        )
        for graph in graphs
    ]
    nodes = _completed([graph.node_values for graph in whole], [graph.node_counts for graph in whole])
    sizes = [{key: edges.size(1) for key, edges in graph.edge_index_dict.items()} for graph in whole]
    edges = _completed([graph.edge_values for graph in whole], sizes)
    flat = list[dict[str, Tensor]]()
    rows: dict[str, dict[Any, int]] = {NODE_ROW: dict.fromkeys(node_types, 0), EDGE_ROW: dict.fromkeys(none, 0)}
    for graph, own, of_edges, size in zip(whole, nodes, edges, sizes, strict=True):
        tensors = flat_tensors(replace(graph, node_values=own, edge_values=of_edges))
        for row, kind, counts in ((NODE_ROW, NODE_TYPE, graph.node_counts), (EDGE_ROW, EDGE_TYPE, size)):
            tensors[row] = tensors[row] + torch.tensor(list(rows[row].values()), device=graph.device)[tensors[kind]]
            rows[row] = {key: before + counts[key] for key, before in rows[row].items()}
        flat.append(tensors)
    storage = replace(whole[0], node_counts=rows[NODE_ROW], node_values=_joined(nodes), edge_values=_joined(edges))
    return storage, flat


def _completed(values: list[dict[str, dict[Any, Tensor]]], counts: list[dict[Any, int]]) -> list[dict[str, Any]]:
    """Gives each graph the arguments and types that others have, without rows where it has no nodes or edges."""
    like = {(name, key): v[:0] for graph in values for name, own in graph.items() for key, v in own.items()}
    result = []
    for graph, sizes in zip(values, counts, strict=True):
        found: dict[str, Any] = {}
        for (name, key), empty in like.items():
            value = graph.get(name, {}).get(key, empty)
            if value.size(0) != sizes[key]:
                raise InstanceError(f"'{name}' of {key!r} is missing in one of the graphs. Set it in all.")
            found.setdefault(name, {})[key] = value
        result.append(found)
    return result


def _joined(values: list[dict[str, Any]]) -> dict[str, dict[Any, Tensor]]:
    """Puts the rows of all graphs behind each other, by argument and type."""
    return {
        name: {key: torch.cat([graph[name][key] for graph in values]) for key in own} for name, own in values[0].items()
    }


def narrow(x: Tensor) -> Tensor:
    """Brings features ``[N, F]`` to at most :data:`COLUMNS` columns by a fixed random projection."""
    width = x.size(1)
    if width <= COLUMNS:
        return x.float()
    generator = torch.Generator().manual_seed(width)
    signs = torch.randint(0, 2, (width, COLUMNS), generator=generator).float() * 2 - 1
    return x.float() @ (signs / width**0.5).to(x.device)
