"""The task: which predictions of a model are explained. Built once from what the user passes, and checked once.

A task is cut into batches of instances only when it is worked on. Such a batch, with everything that the model says
of it, is a :class:`TaskInputs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.checks import check_graph, check_index
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.typed import TypedGraph
from gflowexplainer.model.kept import ModelCache
from gflowexplainer.model.observer import Observation, Observer, observe_graphs
from gflowexplainer.model.positions import positions
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target, given_targets
from gflowexplainer.model.task_inputs import Fields, TaskInputs
from gflowexplainer.ops.hashed_random import combine, hash_rows
from gflowexplainer.ops.segments import segment_ids, segment_sum
from gflowexplainer.ops.sparse_rows import SparseRows
from gflowexplainer.storage.identity import identity_of

FEW, SMALL = 8, 1_000_000
"""Predictions on a GPU that are worked on at hand, on the CPU, and nodes and edges together that their graph may have.

A rollout is some thousand kernels, and a GPU begins each of them later than a CPU is done with a few instances.
"""


class Task(ABC):
    """Predictions of one model that are to be explained.

    Attributes:
        predictor: The model.
        data: The graph or graphs as the user passed them.
        index: The user's ids, shape ``[I]``: nodes, or positions of graphs.
    """

    _given: Tensor | None
    """The user's targets, one an instance."""

    def __init__(self, predictor: Predictor, data: Any, index: Tensor) -> None:
        self.predictor, self.data, self.index = predictor, data, index

    @property
    def model(self) -> nn.Module:
        """The user's model."""
        return self.predictor.model

    def __len__(self) -> int:
        return self.index.numel()

    @abstractmethod
    def inputs(self, which: slice = slice(None)) -> TaskInputs:
        """Cuts out the instances ``which``, and evaluates the model on them."""

    @abstractmethod
    def given(self) -> list[dict[str, Any]]:
        """Returns everything that the model is given of each graph, by the name of the argument."""

    def identity(self, settings: Mapping[str, Any]) -> dict[str, str]:
        """Names everything that decides what is learned of these predictions, to store with it."""
        predictor = self.predictor
        return identity_of(
            self.model,
            self.given(),
            index=self.index.cpu(),
            target=self._given,
            settings=settings,
            task=", ".join(map(str, (predictor.mode, predictor.level, predictor.return_type, *self._types()))),
        )

    def _types(self) -> tuple[Any, ...]:
        """Returns the types that are predicted, where there are any."""
        return tuple(filter(None, (self.predictor.node_type, self.predictor.edge_type)))


class NodeTask(Task):
    """Predictions at nodes of one graph.

    Args:
        predictor: The model.
        graph: The whole graph.
        index: The nodes; all if ``None``.
        target: Classes or values to preserve instead of the predicted ones: one a node of the graph, or one each.
        graph_index: The index of the graph, where it has been built already.
        limit: Bound on the nodes of an instance.
        data: The graph as the user passed it.
        kept: What is known from earlier calls, and where this task leaves what it finds out.
        node_type: In the flat form of a heterogeneous graph, the type of the nodes; ids are then those of the type.
        at_hand: Whether few predictions on a GPU may be worked on on the CPU. The model is evaluated where it is.
    """

    def __init__(
        self,
        predictor: Predictor,
        graph: InputGraph,
        index: Any = None,
        target: Any = None,
        *,
        graph_index: GraphIndex | None = None,
        limit: int | None = None,
        data: Any = None,
        kept: ModelCache | None = None,
        node_type: str | None = None,
        at_hand: bool = False,
    ) -> None:
        self._kept = kept = ModelCache() if kept is None else kept
        predictor.settle(kept.locality(predictor, graph))
        small = graph.x.size(0) + graph.edge_index.size(1) <= SMALL
        if at_hand and small and graph_index is None and _is_few(index) and _is_far(graph):
            graph = kept.at_hand(graph)
        self.graph, self._limit, self._detached = graph, limit, graph.detached()
        x, edge_index = self._detached.x, self._detached.edge_index
        self.num_nodes = x.size(0)
        index_before, whole = kept.find(predictor, graph)
        if graph_index is None:
            graph_index = index_before or GraphIndex.build(edge_index, self.num_nodes)
        else:
            graph_index.refuse_another(edge_index, self.num_nodes)
        self.span = slice(0, self.num_nodes) if node_type is None else _typed(graph).span(node_type)
        """The nodes that the model predicts at."""
        count = self.span.stop - self.span.start
        where = "the graph" if node_type is None else f"the type {node_type!r}"
        own = torch.arange(count, device=x.device) if index is None else check_index(index, count, x.device, where)
        super().__init__(predictor, data, own + self.span.start if self.span.start else own.clone())
        self._given = given_targets(predictor, target, own, count)
        self._graph_index = graph_index
        self._observer = Observer(predictor, x, edge_index, self._detached.arguments, graph_index, limit, whole=whole)

    def inputs(self, which: slice = slice(None)) -> TaskInputs:
        """Cuts out the instances ``which``, and evaluates the model on them."""
        if range(len(self))[which] == range(len(self)):
            return self._cut(self.index, self._given)
        return self._cut(self.index[which], None if self._given is None else self._given[which])

    def given(self) -> list[dict[str, Any]]:
        """See :class:`Task`."""
        return [self.graph.given()]

    def inputs_at(self, nodes: Tensor) -> TaskInputs:
        """Cuts out the instances of any nodes of the graph, with the model's own predictions."""
        return self._cut(nodes, None)

    def found(self) -> dict[Any, Any]:
        """Returns what was found out about model and graph in earlier calls, to add to."""
        return self._kept.found(self.predictor, self.graph)

    def labels_at(self, nodes: Tensor) -> Tensor | None:
        """Returns the class that the model predicts at nodes, ``[I]``; ``None`` where it predicts values."""
        if self.predictor.mode == "regression":
            return None
        whole = self._observer.whole
        if whole is not None:
            # What the model predicts on the whole graph is what it predicts for an instance in its surroundings.
            read = self.predictor.read(whole.output[nodes]) if whole.prediction is None else whole.prediction[nodes]
            return read.argmax(dim=1)
        return Target.of(self.predictor, self._instances(nodes)).label

    @property
    def _everything(self) -> bool:
        """Whether an instance is the whole graph, as the model looks at all of it; a large one is cut even so."""
        return not self.predictor.locality.local and (self._limit is None or self.num_nodes <= self._limit)

    def _instances(self, nodes: Tensor) -> Instances:
        graph, hops = self._detached, None if self._everything else self.predictor.num_hops
        cut = Instances.cut(graph.x, self._graph_index, nodes, hops, limit=self._limit, **graph.arguments)
        return self.predictor.typed(cut)

    def _cut(self, nodes: Tensor, label: Tensor | None) -> TaskInputs:
        instances, predictor = self._instances(nodes), self.predictor
        # What was predicted is what the model says with everything there, not on the instance alone.
        seen = self._observer.at(instances)
        self._kept.keep(predictor, self.graph, self._graph_index, self._observer.whole)
        node_prediction = predictor.read(seen.output) if seen.prediction is None else seen.prediction
        if self.span != slice(0, self.num_nodes):
            # At nodes of other types the model predicts nothing.
            own = (instances.node_id >= self.span.start) & (instances.node_id < self.span.stop)
            node_prediction = torch.where(own[:, None], node_prediction, 0.0)
        if label is not None:
            # The same node may be explained with several targets: these are different instances.
            instances = named_instances(instances, combine(instances.graph, hash_rows(label)))
        return TaskInputs(
            predictor,
            instances,
            Target.of(predictor, instances, label, prediction=node_prediction.index_select(0, instances.center)),
            embedding=seen.embedding,
            node_prediction=node_prediction,
            index=nodes,
            graphs=[self.graph] * nodes.numel(),
            fields=partial(self._fields, instances, seen, self._observer.whole, node_prediction, label),
            data=self.data,
        )

    def _fields(
        self,
        instances: Instances,
        seen: Observation,
        everywhere: Observation | None,
        node_prediction: Tensor,
        label: Tensor | None,
        i: int,
    ) -> Fields:
        """Puts together what PyG keeps of a prediction: of all nodes where all were evaluated, else of those around."""
        regression = self.predictor.mode == "regression"
        first, count = self.span.start, self.span.stop - self.span.start
        node = instances.node_id[instances.center[i]] - first
        if everywhere is not None:
            prediction: Any = everywhere.output[self.span]
            target: Any = prediction if regression else self._classes[self.span]
            if label is not None:
                target = _with_row(target, node, label[i])
            return {"prediction": prediction, "target": target, "index": node.reshape(1)}
        part = slice(int(instances.ptr[i]), int(instances.ptr[i + 1]))
        place = instances.node_id[part]
        own = seen.output[part] if regression else node_prediction[part].argmax(dim=1)
        if label is not None:
            own = _with_row(own, instances.center[i] - instances.ptr[i], label[i])
        fits = (place >= first) & (place < self.span.stop)
        place = place[fits] - first
        return {
            "prediction": SparseRows(seen.output[part][fits], place, count, fill=torch.nan),
            "target": SparseRows(own[fits], place, count, fill=torch.nan if regression else -1),
            "index": node.reshape(1),
        }

    @cached_property
    def _classes(self) -> Tensor:
        """The class that the model predicts at every node of the graph, shape ``[N]``."""
        whole = self._observer.whole
        assert whole is not None
        assert whole.prediction is not None
        return whole.prediction.argmax(dim=1)


class GraphTask(Task):
    """Predictions of whole graphs.

    Args:
        predictor: The model.
        graphs: The graphs.
        index: Positions of those to explain; all if ``None``.
        target: Classes or values to preserve instead of the predicted ones: one a graph, or one each.
        data: The graphs as the user passed them.
        kept: What is known from earlier calls.
        at_hand: Whether few predictions on a GPU may be worked on on the CPU. The model is evaluated where it is.
    """

    def __init__(
        self,
        predictor: Predictor,
        graphs: Sequence[InputGraph],
        index: Any = None,
        target: Any = None,
        *,
        data: Any = None,
        kept: ModelCache | None = None,
        at_hand: bool = False,
    ) -> None:
        if len(graphs) == 0:
            raise InstanceError("There is no graph to explain. Pass at least one.")
        places = positions(index, len(graphs))
        self._graphs = [graphs[place] for place in places]
        for number, graph in zip(places, self._graphs, strict=True):
            check_graph(graph.x, graph.edge_index, f"graph {number}")
        kept = ModelCache() if kept is None else kept
        predictor.settle(kept.locality(predictor, self._graphs[0]))
        if at_hand and len(places) <= FEW and all(_is_far(graph) for graph in self._graphs):
            self._graphs = [graph.on_cpu() for graph in self._graphs]
        super().__init__(predictor, data, torch.tensor(places, device=self._graphs[0].x.device))
        self._given = given_targets(predictor, target, self.index, len(graphs))
        self._counted = len(graphs) > 1 or not (data is None or isinstance(data, BaseData))

    def given(self) -> list[dict[str, Any]]:
        """See :class:`Task`."""
        return [graph.given() for graph in self._graphs]

    def inputs(self, which: slice = slice(None)) -> TaskInputs:
        """Puts the graphs ``which`` together, and evaluates the model on them."""
        graphs, predictor = self._graphs[which], self.predictor
        data = list[Data]()
        names: set[str] = set()
        shared: dict[str, Any] = {}
        for graph in graphs:
            given = graph.detached()
            rows, others = given.sorted_arguments()
            names.update(rows)
            if data:
                _refuse_differing(shared, others, names)
            shared |= others
            data.append(Data(x=given.x, edge_index=given.edge_index, **rows))
        label = None if self._given is None else self._given[which]
        shared = {name: value for name, value in shared.items() if name not in names}
        instances = predictor.typed(Instances.join(data, arguments=sorted(names), **shared))
        instances = _by_content(instances, label, *predictor.contents(instances))
        seen = observe_graphs(predictor, instances)
        target = Target.of(predictor, instances, label, prediction=predictor.read(seen.output))
        preserved: Any = target.prediction if target.label is None else target.label

        def fields(i: int) -> Fields:
            return {"prediction": seen.output[i : i + 1], "target": preserved[i : i + 1]}

        return TaskInputs(
            predictor,
            instances,
            target,
            embedding=seen.embedding,
            index=self.index[which],
            graphs=graphs,
            fields=fields,
            data=self.data,
            counted=self._counted,
        )


def _refuse_differing(known: Mapping[str, Any], others: Mapping[str, Any], names: Set[str]) -> None:
    """Refuses tensors that differ between graphs, or that some lack, and are not among the ``names`` of rows."""
    for name in (known.keys() | others.keys()) - names:
        given = [value for value in (known.get(name), others.get(name)) if isinstance(value, Tensor)]
        if given and (len(given) == 1 or not torch.equal(*given)):
            raise InstanceError(
                f"'{name}' differs between graphs, or some lack it, but it has neither one row a node nor one an edge. "
                "Pass it one row a node, or explain the graphs one at a time."
            )


def _is_few(index: Any) -> bool:
    """Returns whether an index, not checked yet, names at most :data:`FEW` nodes."""
    if isinstance(index, Tensor):
        return index.numel() <= FEW
    return isinstance(index, int) or (isinstance(index, Sequence) and len(index) <= FEW)


def _is_far(graph: InputGraph) -> bool:
    """Returns whether a graph lies on a GPU and is handed to the model as it is."""
    return graph.x.is_cuda and graph.typed is None


def _typed(graph: InputGraph) -> TypedGraph:
    """Returns the heterogeneous graph that this one is the flat form of."""
    if graph.typed is None:
        raise InstanceError("'node_type' and 'edge_type' belong to a HeteroData. Leave them out.")
    return graph.typed


def _with_row(values: Tensor, row: Tensor, value: Tensor) -> Tensor:
    """Copies ``values`` with one row replaced."""
    copy = values.clone()
    copy[row] = value.reshape(copy[row].shape).to(copy)
    return copy


def named_instances(instances: Instances, number: Tensor) -> Instances:
    """Names each instance by a number ``[I]``, from which all its noise follows."""
    return replace(instances, graph=number, key=combine(number[instances.owner], instances.node_id))


def _by_content(
    instances: Instances, label: Tensor | None, node_content: dict[str, Tensor], edge_content: dict[str, Tensor]
) -> Instances:
    """Names graphs by what they hold instead of their position, so that no batch changes their explanation.

    Args:
        instances: The graphs.
        label: What is to be preserved of each, if the user says it.
        node_content: What the model is given of each node beside features, by name, ``[n, ...]``.
        edge_content: The same of each edge, ``[e, ...]``.
    """
    count, first = len(instances), instances.ptr[:-1]
    edge_owner = segment_ids(instances.edge_counts, instances.edge_id.numel())
    source, target = instances.edge_index - first[edge_owner]
    node = combine(instances.node_id, hash_rows(instances.x))
    edge = combine(instances.edge_id, source, target)
    for _, value in sorted(node_content.items()):
        node = combine(node, hash_rows(value))
    for _, value in sorted(edge_content.items()):
        edge = combine(edge, hash_rows(value))
    number = combine(segment_sum(node, instances.owner, count), segment_sum(edge, edge_owner, count))
    return named_instances(instances, number if label is None else combine(number, hash_rows(label)))
