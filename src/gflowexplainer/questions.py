"""What the user asks: graphs as handed over, made into batches of instances with targets and embeddings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from gflowexplainer.errors import InstanceError
from gflowexplainer.graph_index import GraphIndex, check_edges, check_features, check_index, rows_of
from gflowexplainer.instances import Instances
from gflowexplainer.noise import combine, mix
from gflowexplainer.rewards.model import Predictor, observe
from gflowexplainer.rewards.target import Target
from gflowexplainer.segments import segment_ids, segment_sum


@dataclass(frozen=True)
class UserGraph:
    """One graph as the user handed it over.

    Attributes:
        x: Node features, shape ``[N, F]``.
        edge_index: Edges, shape ``[2, E]``.
        arguments: What else the model is called with on this graph.
        nodes: Where its nodes lie in the graph that is shown, shape ``[N]``; ``None`` if that is this one.
        edges: The same for its edges, shape ``[E]``.
        shown: The graph that is shown, if it is another.
    """

    x: Tensor
    edge_index: Tensor
    arguments: dict[str, Any]
    nodes: Tensor | None = None
    edges: Tensor | None = None
    shown: UserGraph | None = None

    def detached(self) -> UserGraph:
        """Cuts the tensors off from any gradient, which is none of ours to fill."""
        free = {name: v.detach() if isinstance(v, Tensor) else v for name, v in self.arguments.items()}
        return replace(self, x=self.x.detach(), arguments=free)

    def split(self, batch: Tensor) -> list[UserGraph]:
        """Takes a disjoint union of graphs apart; ``batch`` ``[N]`` names the graph of each node."""
        if not isinstance(batch, Tensor) or batch.shape != (self.x.size(0),) or batch.dtype != torch.long:
            got = f"{batch.dtype} of shape {tuple(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
            raise InstanceError(f"'batch' must be an int64 tensor with one entry a node (got {got}).")
        number = torch.unique(batch)
        if number.numel() == 1:
            return [self]
        source, target = self.edge_index
        if not torch.equal(batch[source], batch[target]):
            raise InstanceError("'batch' says that an edge joins two graphs. Pass a disjoint union.")
        parts = []
        for graph in number:
            nodes, edges = torch.nonzero(batch == graph).flatten(), torch.nonzero(batch[source] == graph).flatten()
            place = torch.zeros_like(batch)
            place[nodes] = torch.arange(nodes.numel(), device=batch.device)
            arguments = {}
            for name, value in self.arguments.items():
                kind = self._rows(name)
                if kind is None and isinstance(value, Tensor) and value.dim() and value.size(0) == number.numel():
                    raise InstanceError(
                        f"'{name}' seems to hold one row a graph, which is not supported. Pass it one row a node."
                    )
                arguments[name] = value if kind is None else value[nodes if kind == "node" else edges]
            parts.append(
                UserGraph(self.x[nodes], place[self.edge_index[:, edges]], arguments, nodes, edges, shown=self)
            )
        return parts

    def _rows(self, name: str) -> str | None:
        """Says whether an argument has one row a node, one an edge, or neither."""
        return rows_of(name, self.arguments[name], self.x.size(0), self.edge_index.size(1))

    def sorted_arguments(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tells the arguments with one row a node or an edge from those that are handed on unchanged."""
        rows = {name: value for name, value in self.arguments.items() if self._rows(name) is not None}
        return rows, {name: value for name, value in self.arguments.items() if name not in rows}


def user_graph(x: Any, edge_index: Any, arguments: Mapping[str, Any], model: nn.Module) -> UserGraph:
    """Checks what cannot be explained at all, and that everything is where the model is."""
    if isinstance(x, Mapping) or isinstance(edge_index, Mapping):
        raise InstanceError("Heterogeneous graphs are not supported. Convert it with HeteroData.to_homogeneous().")
    number = check_features(x)
    check_edges(edge_index, number)
    if "batch_size" in arguments and arguments["batch_size"] is not None:
        raise InstanceError("'batch_size' cannot be passed: the model is asked about many subgraphs at once.")
    if isinstance(model, nn.Module):
        places = (tensor.device for tensor in (*model.parameters(), *model.buffers()))
        device = next(places, x.device)
        for name, value in {"x": x, "edge_index": edge_index, **arguments}.items():
            if isinstance(value, Tensor) and value.device != device:
                raise InstanceError(f"'{name}' is on {value.device}, but the model on {device}. Move one of them.")
    return UserGraph(x, edge_index, dict(arguments))


def graphs_of(data: Any, model: nn.Module, arguments: dict[str, Any]) -> list[UserGraph]:
    """Takes what :meth:`GFlowExplainer.fit` accepts as data apart into graphs."""
    try:
        graphs = [data] if isinstance(data, BaseData) else list(data)
    except TypeError:
        graphs = [data]
    wrong = next((graph for graph in graphs if not isinstance(graph, Data)), None)
    if wrong is not None:
        raise InstanceError(
            f"'data' must be a Data of PyG, or a list or dataset of them (got {type(wrong).__name__})."
            + (" Convert it with HeteroData.to_homogeneous()." if type(wrong).__name__ == "HeteroData" else "")
        )
    found = []
    for number, graph in enumerate(graphs):
        if graph.x is None or graph.edge_index is None:
            raise InstanceError(f"Graph {number} has no 'x' or no 'edge_index'. Set both.")
        own = {
            name: graph[name]
            for name in _parameters(model)
            if name in graph and isinstance(graph[name], Tensor) and name not in ("batch", "batch_size")
        }
        found.append(user_graph(graph.x, graph.edge_index, own | arguments, model))
    return found


def _parameters(model: nn.Module) -> list[str]:
    """Names what the model's ``forward`` takes after features and edges."""
    parameters = list(inspect.signature(model.forward).parameters.values())[2:]
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def without_batch(graph: UserGraph) -> list[UserGraph]:
    """Takes a disjoint union apart as its argument ``batch`` says; the model is given a ``batch`` of our own."""
    arguments = dict(graph.arguments)
    batch = arguments.pop("batch", None)
    bare = replace(graph, arguments=arguments)
    if batch is None:
        return [bare]
    # What is shown is what the user passed, 'batch' included.
    return [replace(part, shown=graph) for part in bare.split(batch)]


def check_one(index: Any, what: str) -> None:
    """Refuses anything but one instance: an explanation of PyG is one pair of masks."""
    if index is None or (isinstance(index, Tensor | Sequence) and torch.as_tensor(index).numel() != 1):
        raise InstanceError(
            f"One call explains one {what} (got index={index!r}). Pass the 'index' of one, or call "
            "'algorithm.explain' for many at once."
        )


def guess_level(data: Any, index: Any) -> str:
    """Guesses whether nodes or graphs are meant: nodes, if one graph comes with an index or a label for each node."""
    one = data is None or isinstance(data, Data)
    labels = data.get("y") if isinstance(data, Data) else None
    of_nodes = isinstance(labels, Tensor) and labels.dim() > 0 and labels.size(0) == data.num_nodes
    return "node" if one and (index is not None or of_nodes) else "graph"


@dataclass(frozen=True)
class Question:
    """``I`` instances of a model's predictions, ready to be trained on or answered.

    Attributes:
        predictor: The model.
        instances: The instances.
        target: What is to be held.
        embedding: The model's embeddings at the nodes of the instances, shape ``[n, H]``.
        evidence: What the model predicts at the nodes of the instances, shape ``[n, C]``; ``None`` at graph level.
        graphs: The graph that each instance lies in.
        shown: What the explanation of each repeats: ``prediction``, ``target`` and ``index``, as PyG has them.
    """

    predictor: Predictor
    instances: Instances
    target: Target
    embedding: Tensor
    evidence: Tensor | None
    graphs: list[UserGraph]
    shown: list[dict[str, Tensor]]


class NodeQuestions:
    """Predictions at nodes of one graph.

    Args:
        predictor: The model.
        graph: The whole graph.
        index: The nodes; all if ``None``.
        target: Classes or values to hold instead of the predicted ones: one a node of the graph, or one each.
    """

    def __init__(self, predictor: Predictor, graph: UserGraph, index: Any, target: Any) -> None:
        self.predictor, self.graph = predictor, graph
        given = graph.detached()
        number = check_features(given.x)
        self._index = GraphIndex.build(given.edge_index, number)
        every = torch.arange(number, device=given.x.device)
        self.nodes = every if index is None else check_index(index, number, given.x.device)
        self._output, self._embedding = observe(predictor.model, given.x, given.edge_index, given.arguments)
        # The whole graph decides what was predicted.
        self._whole = predictor.read(predictor.checked(self._output, number))
        self._given = _labels(predictor, target, self.nodes, number)
        self._detached = given

    def __len__(self) -> int:
        return self.nodes.numel()

    def question(self, which: slice) -> Question:
        """Cuts out the instances ``which``."""
        nodes, graph = self.nodes[which], self._detached
        instances = Instances.around_nodes(
            graph.x, graph.edge_index, nodes, self.predictor.num_hops, graph_index=self._index, **graph.arguments
        )
        whole, regression = self._whole[nodes], self.predictor.mode == "regression"
        everywhere = self._output if regression else self._whole.argmax(dim=1)
        if self._given is None:
            label = whole if regression else everywhere[nodes]
            targets = [everywhere] * len(nodes)
        else:
            label = self._given[which]
            # The same node may be asked about with several targets: these are different instances.
            instances = _named(instances, combine(instances.graph, _row_hash(label)))
            targets = [_with_row(everywhere, node, value) for node, value in zip(nodes, label, strict=True)]
        target = Target.of(self.predictor, instances, label, prediction=whole)
        shown = [
            {"prediction": self._output, "target": target, "index": node.reshape(1)}
            for node, target in zip(nodes, targets, strict=True)
        ]
        embedding, evidence = self._embedding[instances.node_id], self._whole[instances.node_id]
        return Question(self.predictor, instances, target, embedding, evidence, [self.graph] * len(nodes), shown)


class GraphQuestions:
    """Predictions of whole graphs.

    Args:
        predictor: The model.
        graphs: The graphs.
        index: Positions of those to explain; all if ``None``.
        target: Classes or values to hold instead of the predicted ones: one a graph, or one each.
    """

    def __init__(self, predictor: Predictor, graphs: Sequence[UserGraph], index: Any, target: Any) -> None:
        self.predictor, self._given = predictor, None
        if len(graphs) == 0:
            raise InstanceError("There is no graph to explain. Pass at least one.")
        places = _positions(index, len(graphs))
        self._graphs = [graphs[place] for place in places]
        for number, graph in zip(places, self._graphs, strict=True):
            check_edges(graph.edge_index, check_features(graph.x, f"graph {number}"), f"graph {number}")
        device = self._graphs[0].x.device
        self._given = _labels(predictor, target, torch.tensor(places, device=device), len(graphs))

    def __len__(self) -> int:
        return len(self._graphs)

    def question(self, which: slice) -> Question:
        """Puts the graphs ``which`` together."""
        graphs, predictor = self._graphs[which], self.predictor
        data = []
        names: set[str] = set()
        shared: dict[str, Any] = {}
        for graph in graphs:
            given = graph.detached()
            rows, shared = given.sorted_arguments()
            names.update(rows)
            data.append(Data(x=given.x, edge_index=given.edge_index, **rows))
        given_label = None if self._given is None else self._given[which]
        shared = {name: value for name, value in shared.items() if name not in names}
        instances = _by_content(Instances.of_graphs(data, arguments=sorted(names), **shared), given_label)
        output, embedding = _ask_graphs(predictor, instances)
        target = Target.of(predictor, instances, given_label, prediction=predictor.read(output))
        held: Any = target.prediction if target.label is None else target.label
        shown = [{"prediction": output[i : i + 1], "target": held[i : i + 1]} for i in range(len(graphs))]
        return Question(predictor, instances, target, embedding, None, graphs, shown)


def _positions(index: Any, count: int) -> list[int]:
    """Turns positions of graphs into a list, or says which one does not exist."""
    if index is None:
        return list(range(count))
    try:
        places = torch.as_tensor(index).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'index' must hold positions of graphs (got {index!r}).") from error
    if places.dtype == torch.bool and places.numel() == count:
        places = torch.nonzero(places).flatten()
    if places.numel() == 0:
        raise InstanceError("'index' is empty. Pass at least one graph.")
    if places.is_floating_point() or places.is_complex() or places.dtype == torch.bool:
        raise InstanceError(f"'index' must hold whole numbers (got {places.dtype}). Call .long() on it.")
    wrong = [place for place in places.tolist() if not 0 <= place < count]
    if wrong:
        raise InstanceError(
            f"'index' names graph {wrong[0]}, but there are {count}. Pass positions in [0, {count}); to explain a "
            "node, use a node-level model with task_level='node'."
        )
    return places.tolist()


def _labels(predictor: Predictor, target: Any, index: Tensor, total: int) -> Tensor | None:
    """Picks the given targets of the asked rows, shape ``[I, C]`` for regression and ``[I]`` otherwise."""
    if target is None:
        return None
    try:
        values = torch.as_tensor(target, device=index.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'target' must be a tensor of classes or values (got {target!r}).") from error
    values = values.reshape(1) if values.dim() == 0 else values
    if values.size(0) == total:
        values = values[index]
    elif values.size(0) != index.numel():
        raise InstanceError(
            f"'target' has {values.size(0)} rows. Pass one for each of the {total} rows of the model's output, "
            f"or one for each of the {index.numel()} asked ones."
        )
    values = values.reshape(index.numel(), -1)
    if predictor.mode == "regression":
        return values
    if values.size(1) != 1:
        raise InstanceError(f"'target' must hold one class each (got {values.size(1)} columns).")
    if values.is_floating_point() and not torch.equal(values, values.round()):
        raise InstanceError("'target' must hold classes, which are whole numbers (got fractions).")
    return values[:, 0].long()


def _with_row(values: Tensor, row: Tensor, value: Tensor) -> Tensor:
    """Copies ``values`` with one row replaced."""
    copy = values.clone()
    copy[row] = value.reshape(copy[row].shape).to(copy)
    return copy


def _row_hash(values: Tensor) -> Tensor:
    """Hashes each row of a tensor ``[R, ...]`` by its contents, shape ``[R]``."""
    bits = values.detach().reshape(values.size(0), -1).double().contiguous().view(torch.int64)
    return mix(bits + mix(torch.arange(bits.size(1), device=bits.device))).sum(dim=1)


def _named(instances: Instances, number: Tensor) -> Instances:
    """Gives each instance a number ``[I]`` of its own, from which all its noise follows."""
    return replace(instances, graph=number, key=combine(number[instances.owner], instances.node_id))


def _by_content(instances: Instances, label: Tensor | None) -> Instances:
    """Names graphs by what they hold instead of their position, so that no batch changes their explanation."""
    count, first = len(instances), instances.ptr[:-1]
    edge_owner = segment_ids(instances.edge_counts, instances.edge_id.numel())
    source, target = instances.edge_index - first[edge_owner]
    node = combine(instances.node_id, _row_hash(instances.x))
    edge = combine(instances.edge_id, source, target)
    for _, value in sorted(instances.node_arguments.items()):
        node = combine(node, _row_hash(value))
    for _, value in sorted(instances.edge_arguments.items()):
        edge = combine(edge, _row_hash(value))
    number = combine(segment_sum(node, instances.owner, count), segment_sum(edge, edge_owner, count))
    return _named(instances, number if label is None else combine(number, _row_hash(label)))


def _ask_graphs(predictor: Predictor, instances: Instances) -> tuple[Tensor, Tensor]:
    """Gives the model's raw output on each graph ``[I, C]`` and its embeddings at every node ``[n, H]``."""
    if not predictor.takes_batch and len(instances) > 1:
        each = torch.arange(len(instances), device=instances.device)
        outputs, rows = zip(*(_ask_graphs(predictor, instances.select(one)) for one in each.split(1)), strict=True)
        return torch.cat(outputs), torch.cat(rows)
    arguments = instances.node_arguments | instances.edge_arguments | instances.shared_arguments
    if predictor.takes_batch:
        arguments |= {"batch": instances.owner}
    output, embedding = observe(predictor.model, instances.x, instances.edge_index, arguments)
    return predictor.checked(output, len(instances)), embedding
