"""The task: which predictions of a model are explained. Checked once; of whole graphs here.

A task is cut into batches of instances only when it is worked on. Such a batch, with everything that the model predicts
for it, is a :class:`~gflowexplainer.model.task_inputs.TaskInputs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.checks import check_graph
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.observer import observe_graphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.probe import settled, witness_of
from gflowexplainer.model.target import Target, given_targets
from gflowexplainer.model.task_inputs import Fields, TaskInputs
from gflowexplainer.model.witness import Witness
from gflowexplainer.ops.hashed_random import combine, hash_rows
from gflowexplainer.ops.segments import segment_ids, segment_sum
from gflowexplainer.storage.identity import identity_of

FEW = 8
"""Predictions on a GPU that are worked on at hand, on the CPU.

A rollout is some thousand kernels, and a GPU begins each of them later than a CPU is done with a few instances.
"""
_STORED = 8
"""Predictions that are stored with what was learned."""


class Task(ABC):
    """Predictions of one model that are to be explained.

    Args:
        predictor: The model.
        data: The graph or graphs as the user passed them.
        index: The user's ids, shape ``[I]``: nodes, or positions of graphs or links.
        given: The user's targets, one an instance.
    """

    def __init__(self, predictor: Predictor, data: Any, index: Tensor, given: Tensor | None) -> None:
        self.predictor, self.data, self.index, self._given = predictor, data, index, given

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

    @abstractmethod
    def witness(self) -> Witness | None:
        """Records one call of the model, to tell by it whether another one is the same."""

    def identity(self, settings: Mapping[str, Any]) -> dict[str, str]:
        """Names everything that decides what is learned of these predictions, to store with it."""
        predictor = self.predictor
        types = filter(None, (predictor.node_type, predictor.edge_type))
        return identity_of(
            self.model,
            self.given(),
            index=self.index.cpu(),
            target=self._given,
            settings=settings,
            predictions=self._predictions(),
            task=", ".join(map(str, (predictor.mode, predictor.level, predictor.return_type, *types))),
        )

    def _predictions(self) -> str:
        """Writes the first few predictions down; a random model has none that come again."""
        if self.predictor.locality.random:
            return ""
        found = self.inputs(slice(0, _STORED)).target.prediction
        return " ".join(f"{value:.6g}" for value in found.flatten().tolist())


class GraphTask(Task):
    """Predictions of whole graphs.

    Args:
        predictor: The model.
        graphs: The graphs.
        index: Positions of those to explain; all if ``None``.
        target: Classes or values to preserve instead of the predicted ones: one a graph, or one each.
        data: The graphs as the user passed them.
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
        at_hand: bool = False,
    ) -> None:
        if len(graphs) == 0:
            raise InstanceError("There is no graph to explain. Pass at least one.")
        places = positions(index, len(graphs))
        self._graphs = [graphs[place] for place in places]
        for number, graph in zip(places, self._graphs, strict=True):
            check_graph(graph.x, graph.edge_index, f"graph {number}")
        predictor = settled(predictor, self._graphs[0])
        if at_hand and len(places) <= FEW and all(is_far(graph) for graph in self._graphs):
            self._graphs = [graph.on_cpu() for graph in self._graphs]
        index = torch.tensor(places, device=self._graphs[0].x.device)
        super().__init__(predictor, data, index, given_targets(predictor, target, index, len(graphs)))
        self._counted = len(graphs) > 1 or not (data is None or isinstance(data, BaseData))

    def given(self) -> list[dict[str, Any]]:
        """See :class:`Task`."""
        return [graph.given() for graph in self._graphs]

    def witness(self) -> Witness | None:
        """See :class:`Task`."""
        return witness_of(self.predictor, self._graphs[0])

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


def is_far(graph: InputGraph) -> bool:
    """Returns whether a graph lies on a GPU and is handed to the model as it is."""
    return graph.x.is_cuda and graph.typed is None


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


def positions(index: Any, count: int, what: str = "graph") -> list[int]:
    """Turns positions of graphs or links into a list, or says which one does not exist."""
    if index is None:
        return list(range(count))
    try:
        places = torch.as_tensor(index).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'index' must hold positions of {what}s (got {index!r}).") from error
    if places.dtype == torch.bool and places.numel() == count:
        places = torch.nonzero(places).flatten()
    if places.numel() == 0:
        raise InstanceError(f"'index' is empty. Pass at least one {what}.")
    if places.is_floating_point() or places.is_complex() or places.dtype == torch.bool:
        raise InstanceError(f"'index' must hold whole numbers (got {places.dtype}). Call .long() on it.")
    wrong = [place for place in places.tolist() if not 0 <= place < count]
    if wrong:
        raise InstanceError(
            f"'index' names {what} {wrong[0]}, but there are {count}. Pass positions in [0, {count}); to explain a "
            "node, use a node-level model with task_level='node'."
        )
    return places.tolist()
