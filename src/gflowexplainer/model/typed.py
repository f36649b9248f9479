"""Evaluates a heterogeneous model: parts of the flat graph go in, dictionaries by type reach the user's model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch_geometric.nn import HeteroConv, MessagePassing

from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.typed import EDGE_ROW, EDGE_TYPE, NODE_ROW, NODE_TYPE, EdgeType, TypedGraph
from gflowexplainer.model.evaluation import evaluation_mode, outputs_seen
from gflowexplainer.model.locality import Locality
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.semantic_attention import SemanticAttention
from gflowexplainer.ops.hashed_random import combine, hash_rows

_MANY = 8
"""Types from which on sorting by type is faster than looking for each."""


@dataclass(frozen=True)
class TypedCall:
    """What a heterogeneous model is called with on a part of the flat graph.

    Attributes:
        x_dict: Features by node type.
        edge_index_dict: Edges by relation.
        arguments: Everything else, by name.
        nodes: Where the nodes of each type stand in the part, by type.
        total: Number of nodes of the part.
    """

    x_dict: dict[str, Tensor]
    edge_index_dict: dict[EdgeType, Tensor]
    arguments: dict[str, Any]
    nodes: dict[str, Tensor]
    total: int


class TypedPredictor(Predictor):
    """A heterogeneous model as a function from subgraphs of the flat graph to predictions.

    The model is called as ``model(x_dict, edge_index_dict, **arguments)`` with all types and relations, some of them
    perhaps without nodes or edges; at graph level with ``batch_dict`` where it takes one, for links with
    ``edge_label_index``, ids among the nodes of both types.

    Args:
        model: The user's model.
        graph: Where rows of features and other arguments are taken from.
        node_type: At node level, the type that the model predicts at.
        edge_type: For links, the relation that the model predicts.
        **settings: See :class:`Predictor`.
    """

    def __init__(
        self,
        model: nn.Module,
        graph: TypedGraph,
        *,
        node_type: str | None = None,
        edge_type: EdgeType | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, **settings)
        self.graph, self.node_type, self.edge_type = graph.detached(), node_type, edge_type
        self.takes_batch = "batch_dict" in inspect.signature(model.forward).parameters
        self.num_types, self.num_relations = len(graph.node_types), len(graph.edge_types)
        self._attention = SemanticAttention(model, graph.edge_types)
        if self.level == "graph" and self._attention.is_missing:
            self.takes_batch = False  # attention over all graphs of a batch would mix them
        self.locality = Locality.usual(self.level, self.takes_batch)
        if self.level == "node":
            graph.span(_needed("node_type", node_type))
        if self.level == "edge":
            for end in _needed("edge_type", edge_type)[::2]:
                graph.span(end)

    @classmethod
    def of(
        cls, predictor: Predictor, graph: TypedGraph, node_type: str | None = None, edge_type: EdgeType | None = None
    ) -> TypedPredictor:
        """Makes one with the settings of another predictor."""
        names = ("level", "mode", "return_type", "given_hops", "memory_budget", "known")
        settings = {name.replace("given", "num"): getattr(predictor, name) for name in names}
        return cls(predictor.model, graph, node_type=node_type, edge_type=edge_type, **settings)

    def contents(self, instances: Instances) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """See :class:`Predictor`; rows mean nothing by themselves, but what stands in them does."""
        graph, nodes, edges = self.graph, dict(instances.node_arguments), dict(instances.edge_arguments)
        node = _contents(nodes[NODE_TYPE], nodes.pop(NODE_ROW), graph.node_types, graph.node_values)
        edge = _contents(edges[EDGE_TYPE], edges.pop(EDGE_ROW), graph.edge_types, graph.edge_values)
        return nodes | {"content": node}, edges | {"content": edge}

    def typed_call(self, edge_index: Tensor, arguments: dict[str, Any]) -> TypedCall:
        """Puts dictionaries by type together for a part of the flat graph.

        Args:
            edge_index: Edges between positions in the part, shape ``[2, e]``.
            arguments: Type and row of its nodes and edges; ``batch`` or ``edge_label_index`` as flat models take them.
        """
        graph, given = self.graph, dict(arguments)
        node_row, edge_row = given.pop(NODE_ROW), given.pop(EDGE_ROW)
        nodes = dict(zip(graph.node_types, _split(given.pop(NODE_TYPE), len(graph.node_types)), strict=True))
        edges = dict(zip(graph.edge_types, _split(given.pop(EDGE_TYPE), len(graph.edge_types)), strict=True))
        place = torch.empty_like(node_row)
        for at in nodes.values():
            place[at] = torch.arange(at.numel(), device=place.device)
        more: dict[str, Any] = dict(graph.shared)
        for name, values in graph.node_values.items():
            more[name] = {key: value[node_row[nodes[key]]] for key, value in values.items()}
        for name, values_of_edges in graph.edge_values.items():
            more[name] = {key: value[edge_row[edges[key]]] for key, value in values_of_edges.items()}
        for name in graph.numbered:
            more[name] = {key: node_row[at] for key, at in nodes.items()}
        batch, pairs = given.pop("batch", None), given.pop("edge_label_index", None)
        if batch is not None:
            more["batch_dict"] = {key: batch[at] for key, at in nodes.items()}
        if pairs is not None:
            more["edge_label_index"] = place[pairs]
        moved = place[edge_index]
        return TypedCall(
            more.pop("x_dict"),
            {key: moved[:, at] for key, at in edges.items()},
            more | given,
            nodes,
            node_row.numel(),
        )

    @property
    def way(self) -> tuple[Any, ...]:
        """See :class:`Predictor`."""
        return self.node_type, self.edge_type

    def predicted(self, num_nodes: int) -> tuple[slice, ...]:
        """See :class:`Predictor`."""
        if self.level == "edge":
            source, _, target = _needed("edge_type", self.edge_type)
            return self.graph.span(source), self.graph.span(target)
        return (self.graph.span(_needed("node_type", self.node_type)),)

    def call(self, x: Tensor, edge_index: Tensor, arguments: dict[str, Any], hidden: Tensor | None = None) -> Any:
        """See :class:`Predictor`; of types without real features, nothing is hidden."""
        call = self.typed_call(edge_index, arguments)
        for key, value in call.x_dict.items():
            if hidden is not None and value.is_floating_point():
                value[hidden[call.nodes[key]]] = torch.nan
        return self._answer(call, "on a part of the graph")

    def _answer(self, call: TypedCall, where: str) -> Any:
        try:
            with self._held(call):
                answer = self.model(call.x_dict, call.edge_index_dict, **call.arguments)
        except Exception as error:
            names = ", ".join(["x_dict", "edge_index_dict", *call.arguments])
            raise ModelError(
                f"{type(self.model).__name__} failed when called with ({names}) {where}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return self._flat(answer, call)

    def _held(self, call: TypedCall) -> AbstractContextManager[None]:
        """Holds what a layer knows of the whole graph for a call on a part of it."""
        if self.level == "graph":
            return nullcontext()
        if self._attention.is_missing:
            graph = self.graph
            types, edges = graph.flat_arguments(), graph.flat_edges()
            if self.level == "edge":
                types["edge_label_index"] = self._some_pair(types[NODE_TYPE])
            whole = self.typed_call(edges, types)
            with evaluation_mode(self.model), self._attention.recorded(graph.node_counts):
                self.model(whole.x_dict, whole.edge_index_dict, **whole.arguments)
        return self._attention.held({key: at.numel() for key, at in call.nodes.items()})

    def _some_pair(self, node_type: Tensor) -> Tensor:
        """Returns any two nodes that a link may join, of nodes of given types ``[n]``, shape ``[2, 1]``."""
        source, _, target = _needed("edge_type", self.edge_type)
        names = self.graph.node_types
        return torch.stack([torch.nonzero(node_type == names.index(end)).flatten()[:1] for end in (source, target)])

    def _flat(self, answer: Any, call: TypedCall) -> Tensor:
        """Puts what the model predicts for the nodes of one type into their places in the flat graph; 0 at others."""
        if self.level != "node":
            return answer
        own = call.nodes[_needed("node_type", self.node_type)]
        if isinstance(answer, dict):
            answer = answer.get(self.node_type)
        if not isinstance(answer, Tensor):
            raise ModelError(
                f"{type(self.model).__name__} must return a tensor, or one for each node type "
                f"(got {type(answer).__name__} for {self.node_type!r})."
            )
        if answer.dim() == 0 or answer.size(0) != own.numel():
            raise ModelError(
                f"{type(self.model).__name__} must return one row a node of type {self.node_type!r}, {own.numel()} "
                f"(got shape {tuple(answer.shape)}). Pass the right 'node_type'."
            )
        rows = answer if answer.dim() > 1 else answer[:, None]
        return rows.new_zeros(call.total, *rows.shape[1:]).index_copy(0, own, rows)

    def _observe(self, x: Tensor, edge_index: Tensor, arguments: dict[str, Any]) -> tuple[Any, Tensor]:
        if self.level == "edge":
            arguments = arguments | {"edge_label_index": self._some_pair(arguments[NODE_TYPE])}
        call = self.typed_call(edge_index, arguments)
        seen = _Embedding(call, self.graph)
        with self.evaluating(), outputs_seen(_layers(self.model), seen.add):
            answer = self._answer(call, "on the whole graph")
        return answer, seen.joined(x)


def _layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Lists the message-passing layers of a model; ``HeteroConv`` as one, without those inside it."""
    inside = {id(m) for h in model.modules() if isinstance(h, HeteroConv) for m in h.modules() if m is not h}
    named = [(name, m) for name, m in model.named_modules() if isinstance(m, MessagePassing | HeteroConv)]
    return [(name, module) for name, module in named if id(module) not in inside]


class _Embedding:
    """What the layers of a model put out at the nodes of each type.

    Layers that return a dictionary say by themselves which types they speak of. Of the others, the relation that they
    are called with tells it, or their name. Layers of different relations that stand beside each other are added up.
    """

    def __init__(self, call: TypedCall, graph: TypedGraph) -> None:
        self.call, self.graph = call, graph
        self.seen: dict[str, Tensor] = {}
        self._relation = {edges.data_ptr(): key for key, edges in call.edge_index_dict.items() if edges.numel()}

    def add(self, name: str, output: Any, given: tuple[Any, ...]) -> None:
        """Adds the output of the layer of a name, and what that was given."""
        if not isinstance(output, dict):
            output = {self._type_of(name, given): output}
        group = name.rpartition(".")[0] if name.count("__") >= 2 else name
        for key, value in output.items():
            at = self.call.nodes.get(key)
            if not isinstance(value, Tensor) or value.dim() < 2 or at is None or at.numel() != value.size(0):
                continue
            rows = value.detach().flatten(1)
            whole = self.seen.get(group, rows.new_zeros(self.call.total, 0))
            whole = pad(whole, (0, max(0, rows.size(1) - whole.size(1))))
            whole[at, : rows.size(1)] += rows
            self.seen[group] = whole

    def _type_of(self, name: str, given: tuple[Any, ...]) -> str | None:
        """Returns the node type of a layer's output; ``None`` if it cannot be told."""
        if len(self.graph.node_types) == 1:
            return self.graph.node_types[0]
        for value in given:
            if isinstance(value, Tensor) and value.data_ptr() in self._relation:
                return self._relation[value.data_ptr()][2]
        return next((key[2] for key in self.graph.edge_types if name.endswith("__".join(key))), None)

    def joined(self, x: Tensor) -> Tensor:
        """Returns what all layers put out at each node of the flat graph, shape ``[N, H]``."""
        parts = [part.to(x.dtype) for part in self.seen.values()]
        return torch.cat(parts, dim=1) if parts else x.new_zeros(self.call.total, 0)


def find_node_type(model: nn.Module, graph: TypedGraph) -> str:
    """Finds the node type that a model predicts at: the only one, or the one with as many nodes as its output rows."""
    if len(graph.node_types) == 1:
        return graph.node_types[0]
    given: dict[str, Any] = dict(graph.shared) | graph.node_values | graph.edge_values
    for name in graph.numbered:
        given[name] = {key: torch.arange(count, device=graph.device) for key, count in graph.node_counts.items()}
    try:
        with evaluation_mode(model):
            answer = model(given.pop("x_dict"), graph.edge_index_dict, **given)
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__} failed on the whole graph: {type(error).__name__}: {error}"
        ) from error
    rows = answer.size(0) if isinstance(answer, Tensor) and answer.dim() else -1
    fits = [node_type for node_type, count in graph.node_counts.items() if count == rows]
    if len(fits) != 1:
        raise ConfigError(
            f"Which node type {type(model).__name__} predicts at cannot be told from its output. Pass 'node_type', one "
            f"of {', '.join(map(repr, graph.node_types))}."
        )
    return fits[0]


def _contents(types: Tensor, rows: Tensor, keys: Sequence[Any], values: Mapping[str, Mapping[Any, Tensor]]) -> Tensor:
    """Hashes what the model is given of each node or edge, shape ``[n]``."""
    content = torch.zeros_like(types)
    for key, at in zip(keys, _split(types, len(keys)), strict=True):
        for _, by_key in sorted(values.items()):
            if key in by_key:
                content[at] = combine(content[at], hash_rows(by_key[key][rows[at]]))
    return content


def _needed(name: str, value: Any) -> Any:
    if value is None:
        raise ConfigError(f"'{name}' is needed to explain a model of a heterogeneous graph. Pass it.")
    return value


def _split(numbers: Tensor, count: int) -> list[Tensor]:
    """Lists where each of ``count`` numbers stands, ascending."""
    if count == 1:
        return [torch.arange(numbers.numel(), device=numbers.device)]
    if count < _MANY:
        return [torch.nonzero(numbers == number).flatten() for number in range(count)]
    order = torch.argsort(numbers, stable=True)
    return list(order.split(torch.bincount(numbers, minlength=count).tolist()))
