"""The task of links: which predictions of a model for pairs of nodes are explained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.links import DETOUR, check_links, is_link, join_ends
from gflowexplainer.graphs.typed import EDGE_TYPE, EdgeType, TypedGraph
from gflowexplainer.model.kept import ModelCache
from gflowexplainer.model.observer import Observer
from gflowexplainer.model.positions import positions
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import TINY, Target, given_targets
from gflowexplainer.model.task import Task, named_instances
from gflowexplainer.model.task_inputs import Fields, TaskInputs
from gflowexplainer.ops.hashed_random import combine, hash_rows


class LinkTask(Task):
    """Predictions for pairs of nodes of one graph.

    Args:
        predictor: The model.
        graph: The whole graph, or the flat form of a heterogeneous one.
        pairs: Ids of both ends of links, shape ``[2, L]``; in a heterogeneous graph those of their types.
        index: Positions of the links to explain; all if ``None``.
        target: Classes or values to preserve instead of the predicted ones: one a link, or one each.
        edge_type: In a heterogeneous graph, the relation that is predicted.
        remove_link: Whether edges between both ends are left out, of the predicted relation and its reverse where there
            are several: what the model would only have to read off explains nothing.
        bound: Nodes that an explanation may have.
        detour: See :func:`~gflowexplainer.graphs.links.join_ends`.
        graph_index, limit, data, kept: See :class:`~gflowexplainer.model.task.NodeTask`.
    """

    def __init__(
        self,
        predictor: Predictor,
        graph: InputGraph,
        pairs: Any,
        index: Any = None,
        target: Any = None,
        *,
        edge_type: EdgeType | None = None,
        remove_link: bool = True,
        bound: int,
        detour: int | None = DETOUR,
        graph_index: GraphIndex | None = None,
        limit: int | None = None,
        data: Any = None,
        kept: ModelCache | None = None,
    ) -> None:
        if bound < 2:
            raise InstanceError(
                f"An explanation of a link holds both ends, so 'max_nodes' must be 2 or more ({bound})."
            )
        self._kept = kept = ModelCache() if kept is None else kept
        predictor.settle(kept.locality(predictor, graph))
        self.graph, self._free, self._remove_link = graph, graph.detached(), remove_link
        self._bound, self._detour, self._limit = bound, detour, limit
        x, edge_index = self._free.x, self._free.edge_index
        first, second = _spans(graph, edge_type)
        counts = (first.stop - first.start, second.stop - second.start)
        self.pairs = check_links(pairs, counts, x.device, same_type=first == second)
        """Both ends of all links, by the user's ids, shape ``[2, L]``."""
        shift = self.pairs.new_tensor([[first.start], [second.start]])
        places = torch.tensor(positions(index, self.pairs.size(1), "link"), device=x.device)
        super().__init__(predictor, data, places)
        self._ends = (self.pairs + shift)[:, places]
        self._given = given_targets(predictor, target, self.index, self.pairs.size(1))
        known, whole = kept.find(predictor, graph)
        if graph_index is None:
            graph_index = known or GraphIndex.build(edge_index, x.size(0))
        else:
            graph_index.refuse_another(edge_index, x.size(0))
        self._graph_index = graph_index
        self._relations = _relations(graph.typed, edge_type) if remove_link else x.new_zeros(0).long()
        self._observer = Observer(predictor, x, edge_index, self._free.arguments, graph_index, limit, whole=whole)

    def inputs(self, which: slice = slice(None)) -> TaskInputs:
        """Cuts out the instances ``which``, and evaluates the model on them."""
        label, predictor = None if self._given is None else self._given[which], self.predictor
        instances = self._instances(self._ends[:, which])
        seen = self._observer.at(instances)
        self._kept.keep(predictor, self.graph, self._graph_index, self._observer.whole)
        if label is not None:
            instances = named_instances(instances, combine(instances.graph, hash_rows(label)))
        target = Target.of(predictor, instances, label)
        places = self.index[which]
        output = _output(target.prediction, predictor.mode, predictor.return_type)
        preserved: Any = target.prediction if target.label is None else target.label

        def fields(i: int) -> Fields:
            pair = self.pairs[:, places[i : i + 1]]
            return {"prediction": output[i : i + 1], "target": preserved[i : i + 1], "edge_label_index": pair}

        return TaskInputs(
            predictor,
            instances,
            target,
            embedding=seen.embedding,
            index=places,
            graphs=[self.graph] * places.numel(),
            fields=fields,
            data=self.data,
        )

    def given(self) -> list[dict[str, Any]]:
        """See :class:`Task`."""
        return [self.graph.given() | {"edge_label_index": self.pairs, "remove_link": self._remove_link}]

    def _instances(self, ends: Tensor) -> Instances:
        """Cuts out what both ends ``[2, I]`` depend on, without the links themselves."""
        arguments = self._free.arguments
        rule = None
        if self._relations is None or self._relations.numel():
            rule = is_link(ends, self._relations, arguments.get(EDGE_TYPE))
        # A model that looks at all it is given is given the whole graph; a large one is cut even so.
        count = self._free.x.size(0)
        everything = not self.predictor.locality.local and (self._limit is None or count <= self._limit)
        instances = Instances.cut(
            self._free.x,
            self._graph_index,
            ends[0],
            None if everything else self.predictor.num_hops,
            limit=self._limit,
            others=ends[1],
            leave_out=rule,
            **arguments,
        )
        return join_ends(self.predictor.typed(instances), self._bound, detour=self._detour)


def _spans(graph: InputGraph, edge_type: EdgeType | None) -> tuple[slice, slice]:
    """Finds where the nodes of both ends stand in the flat graph."""
    if graph.typed is None:
        if edge_type is not None:
            raise InstanceError("'edge_type' belongs to a HeteroData. Leave it out.")
        every = slice(0, graph.x.size(0))
        return every, every
    if edge_type is None or len(edge_type) != 3:
        raise InstanceError(
            f"'edge_type' must be (source type, relation, target type) of the predicted links (got {edge_type!r})."
        )
    return graph.typed.span(edge_type[0]), graph.typed.span(edge_type[2])


def _relations(typed: TypedGraph | None, edge_type: EdgeType | None) -> Tensor | None:
    """Numbers the relation that is predicted and its reverse, as far as the graph has them; ``None`` for all."""
    if typed is None or edge_type is None:
        return None
    source, relation, target = edge_type
    plain = relation.removeprefix("rev_")
    names = {(source, relation, target), (target, f"rev_{relation}", source), (target, plain, source)}
    found = [number for number, key in enumerate(typed.edge_types) if key in names]
    return torch.tensor(found, dtype=torch.long, device=typed.device)


def _output(prediction: Tensor, mode: str, return_type: str) -> Tensor:
    """Writes probabilities ``[I, C]`` as a model of that mode and return type returns them."""
    if mode == "regression":
        return prediction
    if mode == "binary_classification":
        prediction = prediction[:, 1:]
        if return_type == "raw":
            return prediction.double().clamp(TINY, 1 - TINY).logit().to(prediction)
    return prediction if return_type == "probs" else prediction.clamp(min=TINY).log()
