"""Tasks on one graph: predictions at its nodes, or for pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.checks import check_index
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph, slice_arguments
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.links import DETOUR, check_links, is_link, join_ends
from gflowexplainer.graphs.typed import EDGE_TYPE, EdgeType, TypedGraph
from gflowexplainer.model.cache import ModelCache
from gflowexplainer.model.observer import SMALL as WHOLE
from gflowexplainer.model.observer import KnownGraph, Observation, Observer
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.probe import settled, widened, witness_of
from gflowexplainer.model.target import TINY, Target, given_targets
from gflowexplainer.model.task import FEW, Task, is_far, named_instances, positions
from gflowexplainer.model.task_inputs import Fields, TaskInputs
from gflowexplainer.model.witness import Witness
from gflowexplainer.ops.hashed_random import combine, hash_rows
from gflowexplainer.ops.sparse_rows import SparseRows

SMALL = 1_000_000
"""Nodes and edges together of a graph on a GPU that may be copied to the CPU."""
_SAME = 1e-3
"""Predictions that differ by less are the same: sums are made in another order."""


class _OneGraph:
    """One graph, and what a model predicts at its nodes.

    Args:
        predictor: The model.
        graph: The whole graph.
        cache: What is known from earlier calls.
        graph_index: The index of the graph, where it has been built already.
        limit: Bound on the nodes of an instance.
    """

    def __init__(
        self,
        predictor: Predictor,
        graph: InputGraph,
        cache: ModelCache | None,
        graph_index: GraphIndex | None,
        limit: int | None,
    ) -> None:
        cache = ModelCache() if cache is None else cache
        self.graph, self.free, self.limit = graph, graph.detached(), limit
        self.known: KnownGraph = cache.graph(predictor, graph)
        self.num_nodes = graph.x.size(0)
        if graph_index is not None:
            graph_index.refuse_another(self.free.edge_index, self.num_nodes)
            self.known.index = graph_index
        elif self.known.index is None:
            self.known.index = GraphIndex.build(self.free.edge_index, self.num_nodes)
        self.index = self.known.index
        self.settle(settled(predictor, graph, self.index))

    def settle(self, predictor: Predictor) -> None:
        """Goes by a predictor from now on."""
        self.predictor = predictor
        self.observer = Observer(predictor, self.free, self.index, self.known, self.limit)

    def observe(self, nodes: Tensor) -> tuple[Instances, Observation]:
        """Cuts out what predictions at nodes depend on, and evaluates the model at all nodes of that.

        What is predicted for an instance alone has to be what the model predicts in the graph. Where it is not, what
        was kept of earlier calls is out of date or, if that is not the reason, the model depends on more than was found
        out: then instances are the whole graph.
        """
        kept = self.known.whole is not None
        instances = self.cut(nodes)
        seen = self.observer.at(instances)
        gap = self._gap(instances, seen)
        if gap and kept:
            self.known.forget()
            self.predictor.known.localities.clear()
            self.settle(settled(self.predictor, self.graph, self.index))
            instances = self.cut(nodes)
            seen = self.observer.at(instances)
            gap = self._gap(instances, seen)
        if gap and self.predictor.given_hops is None:
            self.settle(widened(self.predictor, self.graph))
            instances = self.cut(nodes)
            seen = self.observer.at(instances)
            self.settle(widened(self.predictor, self.graph, self._gap(instances, seen)))
        return instances, seen

    def _gap(self, instances: Instances, seen: Observation) -> float:
        """Returns by how much predictions for instances alone differ from those in the graph; 0 if hardly."""
        if instances.left_out is not None:  # nodes are left out, which is said where it is shown
            return 0.0
        there = seen.read(self.predictor)[instances.center]
        differ = (self.predictor.whole(instances) - there).abs().max()
        if len(instances) > 1:  # side by side they may make up for what each lacks
            first = instances.select(torch.zeros(1, dtype=torch.long, device=there.device))
            differ = torch.maximum(differ, (self.predictor.whole(first) - there[:1]).abs().max())
        gap = float(differ) / (1 + float(there.abs().max()))
        return gap if gap > max(_SAME, 3 * self.predictor.locality.random) else 0.0

    def cut(self, nodes: Tensor, others: Tensor | None = None, leave_out: Any = None) -> Instances:
        """Cuts out what predictions at nodes, or for pairs of them, depend on.

        Where the model looks at all of the graph, that is the whole graph; a large one is cut even so.
        """
        everything = not self.predictor.locality.local and (self.limit is None or self.num_nodes <= self.limit)
        hops, rule = None if everything else self.predictor.num_hops, {"others": others, "leave_out": leave_out}
        cut = Instances.cut(self.free.x, self.index, nodes, hops, limit=self.limit, **rule, **self.free.arguments)
        return self.predictor.typed(cut)


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
        cache: What is known from earlier calls, and where this task leaves what it finds out.
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
        cache: ModelCache | None = None,
        at_hand: bool = False,
    ) -> None:
        small = graph.x.size(0) + graph.edge_index.size(1) <= SMALL
        if cache is not None and at_hand and small and graph_index is None and _is_few(index) and is_far(graph):
            graph = cache.at_hand(graph)
        self._place = place = _OneGraph(predictor, graph, cache, graph_index, limit)
        (self.span,) = predictor.predicted(place.num_nodes)
        """The nodes that the model predicts at."""
        count, node_type = self.span.stop - self.span.start, predictor.node_type
        where = "the graph" if node_type is None else f"the type {node_type!r}"
        device = graph.x.device
        own = torch.arange(count, device=device) if index is None else check_index(index, count, device, where)
        own_targets = given_targets(predictor, target, own, count)
        super().__init__(place.predictor, data, own + self.span.start if self.span.start else own.clone(), own_targets)

    @property
    def known(self) -> KnownGraph:
        """What was found out about model and graph, in earlier calls too."""
        return self._place.known

    def inputs(self, which: slice = slice(None)) -> TaskInputs:
        """Cuts out the instances ``which``, and evaluates the model on them."""
        if range(len(self))[which] == range(len(self)):
            return self._cut(self.index, self._given)
        return self._cut(self.index[which], None if self._given is None else self._given[which])

    def witness(self) -> Witness | None:
        """See :class:`Task`."""
        return witness_of(self.predictor, self._place.graph, self._place.index)

    def given(self) -> list[dict[str, Any]]:
        """See :class:`Task`."""
        return [self._place.graph.given()]

    def inputs_at(self, nodes: Tensor) -> TaskInputs:
        """Cuts out the instances of any nodes of the graph, with the model's own predictions."""
        return self._cut(nodes, None)

    def labels_at(self, nodes: Tensor) -> Tensor | None:
        """Returns the class that the model predicts at nodes, ``[I]``; ``None`` where it predicts values."""
        if self.predictor.mode == "regression":
            return None
        whole = self.known.whole
        if whole is not None:
            # What the model predicts on the whole graph is what it predicts for an instance in its surroundings.
            return whole.read(self.predictor)[nodes].argmax(dim=1)
        return Target.of(self.predictor, self._place.cut(nodes)).label

    def _cut(self, nodes: Tensor, label: Tensor | None) -> TaskInputs:
        place = self._place
        # What was predicted is what the model says with everything there, not on the instance alone.
        instances, seen = place.observe(nodes)
        self.predictor = predictor = place.predictor
        node_prediction = seen.read(predictor)
        if self.span != slice(0, place.num_nodes):
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
            graphs=[place.graph] * nodes.numel(),
            fields=partial(self._fields, instances, seen, self.known.whole, node_prediction, label),
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
            target: Any = prediction if regression else self._classes
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
        """The class that the model predicts at every node of the graph that it predicts at, shape ``[N]``."""
        whole = self.known.whole
        assert whole is not None
        return whole.read(self.predictor).argmax(dim=1)[self.span]


class LinkTask(Task):
    """Predictions for pairs of nodes of one graph.

    Args:
        predictor: The model.
        graph: The whole graph, or the flat form of a heterogeneous one.
        pairs: Ids of both ends of links, shape ``[2, L]``; in a heterogeneous graph those of their types.
        index: Positions of the links to explain; all if ``None``.
        target: Classes or values to preserve instead of the predicted ones: one a link, or one each.
        remove_link: Whether edges between both ends are left out, of the predicted relation and its reverse where there
            are several: what the model would only have to read off explains nothing.
        bound: Nodes that an explanation may have.
        detour: See :func:`~gflowexplainer.graphs.links.join_ends`.
        graph_index, limit, data, cache: See :class:`NodeTask`.
    """

    def __init__(
        self,
        predictor: Predictor,
        graph: InputGraph,
        pairs: Any,
        index: Any = None,
        target: Any = None,
        *,
        remove_link: bool = True,
        bound: int,
        detour: int | None = DETOUR,
        graph_index: GraphIndex | None = None,
        limit: int | None = None,
        data: Any = None,
        cache: ModelCache | None = None,
    ) -> None:
        if bound < 2:
            raise InstanceError(
                f"An explanation of a link holds both ends, so 'max_nodes' must be 2 or more ({bound})."
            )
        self._place = place = _OneGraph(predictor, graph, cache, graph_index, limit)
        self._bound, self._detour, self._remove_link = bound, detour, remove_link
        first, second = predictor.predicted(place.num_nodes)
        counts = (first.stop - first.start, second.stop - second.start)
        self.pairs = check_links(pairs, counts, graph.x.device, same_type=first == second)
        """Both ends of all links, by the user's ids, shape ``[2, L]``."""
        shift = self.pairs.new_tensor([[first.start], [second.start]])
        places = torch.tensor(positions(index, self.pairs.size(1), "link"), device=graph.x.device)
        super().__init__(place.predictor, data, places, given_targets(predictor, target, places, self.pairs.size(1)))
        self._ends = (self.pairs + shift)[:, places]
        self._relations = _relations(graph.typed, predictor.edge_type) if remove_link else places[:0]

    def inputs(self, which: slice = slice(None)) -> TaskInputs:
        """Cuts out the instances ``which``, and evaluates the model on them."""
        label, place, ends = None if self._given is None else self._given[which], self._place, self._ends[:, which]
        instances = self._instances(ends)
        if self.predictor.given_hops is None and self._gap(ends, instances):
            place.settle(widened(self.predictor, place.graph))
            instances, self.predictor = self._instances(ends), place.predictor
        predictor, seen = self.predictor, place.observer.at(instances)
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
            graphs=[self._place.graph] * places.numel(),
            fields=fields,
            data=self.data,
        )

    def witness(self) -> Witness | None:
        """See :class:`Task`."""
        return witness_of(self.predictor, self._place.graph, self._place.index)

    def given(self) -> list[dict[str, Any]]:
        """See :class:`Task`."""
        return [self._place.graph.given() | {"edge_label_index": self.pairs, "remove_link": self._remove_link}]

    def _instances(self, ends: Tensor) -> Instances:
        """Cuts out what both ends ``[2, I]`` depend on, without the links themselves."""
        cut = self._place.cut(ends[0], ends[1], self._rule(ends))
        return join_ends(cut, self._bound, detour=self._detour)

    def _rule(self, ends: Tensor) -> Any:
        """Returns the rule that marks the edges which links are to do without; ``None`` if all stay."""
        if self._relations is not None and not self._relations.numel():
            return None
        return is_link(ends, self._relations, self._place.free.arguments.get(EDGE_TYPE))

    def _gap(self, ends: Tensor, instances: Instances) -> bool:
        """Whether the first link is predicted otherwise in the whole graph, without the link, than on its instance."""
        place, predictor = self._place, self.predictor
        small = place.index.num_nodes + place.index.num_edges <= WHOLE
        if not small or not predictor.locality.local or instances.left_out is not None:
            return False
        joined, every = place.free.edge_index, np.arange(place.index.num_edges)
        rule, stays = self._rule(ends[:, :1]), torch.ones(every.size, dtype=torch.bool, device=joined.device)
        if rule is not None:
            stays &= ~torch.from_numpy(rule(np.zeros_like(every), joined.cpu().numpy(), every)).to(stays.device)
        nodes, edges = torch.arange(place.num_nodes, device=stays.device), torch.nonzero(stays).flatten()
        sliced = slice_arguments(place.free.arguments, place.num_nodes, every.size, nodes, edges)
        arguments = {name: value for kind in sliced.values() for name, value in kind.items()}
        arguments["edge_label_index"] = ends[:, :1]
        with predictor.evaluating():
            plain = predictor.call(place.free.x, joined[:, edges], arguments)
        there = predictor.read(predictor.checked(plain, 1))
        first = instances.select(torch.zeros(1, dtype=torch.long, device=stays.device))
        gap = float((predictor.whole(first) - there).abs().max()) / (1 + float(there.abs().max()))
        return gap > max(_SAME, 3 * predictor.locality.random)


def _is_few(index: Any) -> bool:
    """Returns whether an index, not checked yet, names at most :data:`FEW` nodes."""
    if isinstance(index, Tensor):
        return index.numel() <= FEW
    return isinstance(index, int) or (isinstance(index, Sequence) and len(index) <= FEW)


def _with_row(values: Tensor, row: Tensor, value: Tensor) -> Tensor:
    """Copies ``values`` with one row replaced."""
    copy = values.clone()
    copy[row] = value.reshape(copy[row].shape).to(copy)
    return copy


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
