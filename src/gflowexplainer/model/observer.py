"""Outputs of a node-level model at all nodes of some instances, evaluated on their receptive fields only.

The prediction at a node of an instance depends on nodes as far from it as it may be from the explained one, so all
that instances of ``k`` hops need lies within ``2 k`` hops of their explained nodes, and one step more for degrees. That
*field* is cut out for a whole batch at once and each of its nodes is computed once. Where it is most of the graph, the
whole graph is evaluated instead, once for all batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.graphs.checks import check_finite
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph, slice_arguments
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.neighborhoods import Reach, reach, surround
from gflowexplainer.model.predictor import Predictor

Value = TypeVar("Value")
SMALL = 50_000
"""Nodes and edges together of a graph that is always evaluated as a whole."""
WIDER = 200
"""A field may have so many times the nodes that an instance may have."""


class Observation:
    """What the model returns at ``n`` nodes.

    Args:
        output: What it returns there, shape ``[n, C]``.
        embedding: Outputs of all its message-passing layers there, shape ``[n, H]``.
        prediction: What that means, probabilities or values, shape ``[n, C]``, where it was read already.
    """

    def __init__(self, output: Tensor, embedding: Tensor, prediction: Tensor | None = None) -> None:
        self.output, self.embedding, self._prediction = output, embedding, prediction

    def read(self, predictor: Predictor) -> Tensor:
        """Returns what the model predicts there, shape ``[n, C]``; read once."""
        if self._prediction is None:
            self._prediction = predictor.read(self.output)
        return self._prediction

    def __getitem__(self, index: Tensor) -> Observation:
        prediction = None if self._prediction is None else self._prediction.index_select(0, index)
        return Observation(self.output.index_select(0, index), self.embedding.index_select(0, index), prediction)

    @classmethod
    def join(cls, parts: Sequence[Observation]) -> Observation:
        """Puts observations behind each other."""
        return cls(torch.cat([part.output for part in parts]), torch.cat([part.embedding for part in parts]))


class KnownGraph:
    """What was found out about a graph, and about a model on it.

    Attributes:
        index: The index of its edges.
        whole: What the model returns at all of its nodes.
    """

    index: GraphIndex | None = None
    whole: Observation | None = None

    def __init__(self) -> None:
        self._more: dict[Any, Any] = {}

    def forget(self) -> None:
        """Forgets what the model predicts, and what was found out by that; the edges stay what they are."""
        self.whole, self._more = None, {}

    def once(self, name: Any, find: Callable[[], Value]) -> Value:
        """Returns what ``find`` returns, and does not call it again for the same ``name``."""
        if name not in self._more:
            self._more[name] = find()
        return self._more[name]


class Observer:
    """Evaluates a model at nodes of one graph.

    Args:
        predictor: The model.
        graph: The whole graph. Of its features only rows that are needed are read; of its edges nothing but where the
            whole graph is evaluated.
        index: The index of the graph.
        known: Where the predictions for the whole graph are kept, once it was evaluated.
        limit: Bound on the nodes of an instance. A field beyond :data:`WIDER` times of it keeps what is most relevant
            to the explained node, which then leaves an error at nodes far from it.
    """

    def __init__(
        self, predictor: Predictor, graph: InputGraph, index: GraphIndex, known: KnownGraph, limit: int | None = None
    ) -> None:
        self.predictor, self.graph, self.index, self.known = predictor, graph, index, known
        self.limit = None if limit is None else WIDER * limit

    def at(self, instances: Instances) -> Observation:
        """Observes the nodes of ``instances``, in their order."""
        small = self.index.num_nodes + self.index.num_edges <= SMALL
        # What is wrong with nodes far from the explained ones is not in the way.
        if not self.predictor.locality.local or (small and bool(torch.isfinite(self.graph.x).all())):
            self._whole()
        if self.known.whole is None:
            nodes = instances.node_id
            field = self._field(torch.unique(nodes[instances.roots]), nodes)
            if field is None and len(instances) > 1:
                every = torch.arange(len(instances), device=nodes.device)
                return Observation.join([self.at(instances.select(half)) for half in every.chunk(2)])
            if field is None:
                field = self._field(nodes[instances.roots].sort().values, nodes, bounded=True)
                assert field is not None
            if 2 * field.key.size <= self.index.num_nodes or self._beyond_limit():
                place = field.key.searchsorted(nodes.cpu().numpy())
                return self._evaluate(field)[torch.from_numpy(place).to(nodes.device)]
        return self._whole()[instances.node_id]

    def _whole(self) -> Observation:
        """Evaluates the model on the whole graph, once."""
        if self.known.whole is None:
            graph = self.graph
            check_finite(graph.x)
            output = self.predictor.observe(graph.x, graph.edge_index, graph.arguments, self.index.num_nodes)
            self.known.whole = Observation(*output)
            if self.predictor.level == "node":
                self.known.whole.read(self.predictor)  # for all calls, not anew for every node
        return self.known.whole

    def _beyond_limit(self) -> bool:
        return self.limit is not None and self.index.num_nodes > self.limit

    def _field(self, centers: Tensor, nodes: Tensor, *, bounded: bool = False) -> Reach | None:
        """Finds what the model needs to answer at ``nodes``; ``None`` if that is too much, unless it is ``bounded``."""
        field = reach(self.index, centers.cpu().numpy(), 2 * self.predictor.num_hops, self.limit)
        if field.dropped.size == 0:
            return field
        if not bounded:
            return None
        missing = np.setdiff1d(nodes.cpu().numpy(), field.key)
        key = np.concatenate([field.key, missing])
        order = key.argsort(kind="stable")
        return Reach(key[order], np.concatenate([field.relevance, np.zeros(missing.size)])[order], field.dropped)

    def _evaluate(self, field: Reach) -> Observation:
        """Evaluates the model on a part of the graph, at the nodes of ``field``."""
        wider, device = surround(self.index, field, self.limit), self.graph.x.device
        parts = (wider.reach.key, wider.edge_id, wider.edge_index, wider.inside)
        nodes, edges, ends, inside = (torch.from_numpy(part).to(device) for part in parts)
        rows = self.graph.x[nodes]
        check_finite(rows, nodes)
        kinds = slice_arguments(self.graph.arguments, self.index.num_nodes, self.index.num_edges, nodes, edges)
        arguments = {name: value for kind in kinds.values() for name, value in kind.items()}
        return Observation(*self.predictor.observe(rows, ends, arguments, nodes.numel()))[inside]


def observe_graphs(predictor: Predictor, instances: Instances) -> Observation:
    """Evaluates a graph-level model on each whole graph: its output ``[I, C]``, and its embeddings ``[n, H]``."""
    if predictor.locality.together == "alone" and len(instances) > 1:
        each = torch.arange(len(instances), device=instances.device)
        return Observation.join([observe_graphs(predictor, instances.select(one)) for one in each.split(1)])
    arguments = instances.node_arguments | instances.edge_arguments | instances.shared_arguments
    if predictor.takes_batch:
        arguments |= {"batch": instances.owner}
    return Observation(*predictor.observe(instances.x, instances.edge_index, arguments, len(instances)))
