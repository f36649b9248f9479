"""Outputs of a node-level model at all nodes of some instances, evaluated on their receptive fields only.

The prediction at a node of an instance depends on nodes as far from it as it may be from the explained one, so all
that instances of ``k`` hops need lies within ``2 k`` hops of their explained nodes, and one step more for degrees. That
*field* is cut out for a whole batch at once and each of its nodes is computed once. Where it is most of the graph, the
whole graph is evaluated instead, once for all batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.graphs.arguments import slice_arguments
from gflowexplainer.graphs.checks import check_finite
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.neighborhoods import Reach, reach, surround
from gflowexplainer.model.predictor import Predictor

SMALL = 50_000
"""Nodes and edges together of a graph that is always evaluated as a whole."""
WIDER = 200
"""A field may have so many times the nodes that an instance may have."""


@dataclass(frozen=True)
class Observation:
    """What the model says at ``n`` nodes.

    Attributes:
        output: What it returns there, shape ``[n, C]``.
        embedding: Outputs of all its message-passing layers there, shape ``[n, H]``.
        prediction: What that means, probabilities or values, shape ``[n, C]``, where it was read already.
    """

    output: Tensor
    embedding: Tensor
    prediction: Tensor | None = None

    def __getitem__(self, index: Tensor) -> Observation:
        prediction = None if self.prediction is None else self.prediction.index_select(0, index)
        return Observation(self.output.index_select(0, index), self.embedding.index_select(0, index), prediction)


class Observer:
    """Evaluates a model at nodes of one graph.

    Args:
        predictor: The model.
        x: Features of the whole graph, shape ``[N, F]``; only rows that are needed are read.
        edge_index: Its edges, shape ``[2, E]``; only read where the whole graph is evaluated.
        arguments: Further arguments of the model.
        index: The index of the graph.
        limit: Bound on the nodes of an instance. A field beyond :data:`WIDER` times of it keeps what is most relevant
            to the explained node, which then leaves an error at nodes far from it.
        whole: What the model predicts for the whole graph, where it is known already.
    """

    def __init__(
        self,
        predictor: Predictor,
        x: Tensor,
        edge_index: Tensor,
        arguments: Mapping[str, Any],
        index: GraphIndex,
        limit: int | None = None,
        whole: Observation | None = None,
    ) -> None:
        self.predictor, self.index = predictor, index
        self.x, self.edge_index, self.arguments = x, edge_index, dict(arguments)
        self.limit = None if limit is None else WIDER * limit
        self.whole = whole
        """What the model predicts for the whole graph, once it has been evaluated there."""

    def at(self, instances: Instances) -> Observation:
        """Observes the nodes of ``instances``, in their order."""
        small = self.index.num_nodes + self.index.num_edges <= SMALL
        # What is wrong with nodes far from the explained ones is not in the way.
        if self.whole is None and not self.predictor.locality.local:
            check_finite(self.x)
            self._evaluate_whole()
        if self.whole is None and small and bool(torch.isfinite(self.x).all()):
            self._evaluate_whole()
        if self.whole is None:
            nodes = instances.node_id
            field = self._field(torch.unique(nodes[instances.roots]), nodes)
            if field is None and len(instances) > 1:
                every = torch.arange(len(instances), device=nodes.device)
                parts = [self.at(instances.select(half)) for half in every.chunk(2)]
                return Observation(torch.cat([p.output for p in parts]), torch.cat([p.embedding for p in parts]))
            if field is None:
                field = self._field(nodes[instances.roots].sort().values, nodes, bounded=True)
                assert field is not None
            if 2 * field.key.size <= self.index.num_nodes or self._beyond_limit():
                place = field.key.searchsorted(nodes.cpu().numpy())
                return self._evaluate(field)[torch.from_numpy(place).to(nodes.device)]
            check_finite(self.x)
            self._evaluate_whole()
        assert self.whole is not None
        return self.whole[instances.node_id]

    def _evaluate_whole(self) -> None:
        """Evaluates the model on the whole graph, whose features were found to be numbers."""
        rows = self.index.num_nodes
        output, embedding = self.predictor.observe(self.x, self.edge_index, self.arguments, rows)
        # It is kept between calls, so that it is read once and not anew for every node.
        prediction = self.predictor.read(output) if self.predictor.level == "node" else None
        self.whole = Observation(output, embedding, prediction)

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
        wider, device = surround(self.index, field, self.limit), self.x.device
        parts = (wider.reach.key, wider.edge_id, wider.edge_index, wider.inside)
        nodes, edges, ends, inside = (torch.from_numpy(part).to(device) for part in parts)
        rows = self.x[nodes]
        check_finite(rows, nodes)
        kinds = slice_arguments(self.arguments, self.index.num_nodes, self.index.num_edges, nodes, edges)
        arguments = {name: value for kind in kinds.values() for name, value in kind.items()}
        return Observation(*self.predictor.observe(rows, ends, arguments, nodes.numel()))[inside]


def observe_graphs(predictor: Predictor, instances: Instances) -> Observation:
    """Evaluates a graph-level model on each whole graph: its output ``[I, C]``, and its embeddings ``[n, H]``."""
    if predictor.locality.together == "alone" and len(instances) > 1:
        each = torch.arange(len(instances), device=instances.device)
        parts = [observe_graphs(predictor, instances.select(one)) for one in each.split(1)]
        return Observation(torch.cat([p.output for p in parts]), torch.cat([p.embedding for p in parts]))
    arguments = instances.node_arguments | instances.edge_arguments | instances.shared_arguments
    if predictor.takes_batch:
        arguments |= {"batch": instances.owner}
    return Observation(*predictor.observe(instances.x, instances.edge_index, arguments, len(instances)))
