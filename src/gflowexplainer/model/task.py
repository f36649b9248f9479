"""What the user asks, made into batches of instances with targets and embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.index import GraphIndex, check_edges, check_features, check_finite, check_index
from gflowexplainer.graphs.inputs import UserGraph
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.observer import Observation, Observer
from gflowexplainer.model.predictor import Predictor, observe
from gflowexplainer.model.target import Target
from gflowexplainer.ops.hashed_random import combine, mix
from gflowexplainer.ops.segments import segment_ids, segment_sum, slices
from gflowexplainer.ops.sparse_rows import SparseRows

BYTES_OF_AN_ENTRY = 128
"""What rollouts keep of a node that they might add, about; not counting the network, which takes them in parts."""


def check_one(index: Any, what: str) -> None:
    """Refuses anything but one instance: an explanation of PyG is one pair of masks."""
    if index is None or (isinstance(index, Tensor | Sequence) and torch.as_tensor(index).numel() != 1):
        raise InstanceError(
            f"One call explains one {what} (got index={index!r}). Pass the 'index' of one, or call "
            "'algorithm.explain' for many at once."
        )


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
        shown: What the explanation of each repeats: ``prediction``, ``target`` and ``index``, as PyG has them. On a
            large graph the first two are only known around the explained node.
    """

    predictor: Predictor
    instances: Instances
    target: Target
    embedding: Tensor
    evidence: Tensor | None
    graphs: list[UserGraph]
    shown: list[dict[str, Tensor | SparseRows]]

    def split(self, states: int, budget: int) -> Iterator[Question]:
        """Takes the instances apart into batches on which so many ``states`` each fit into a budget in bytes.

        The frontier of a state is counted as the whole instance.
        """
        instances, target = self.instances, self.target
        parts = list(slices(instances.node_counts * (states * BYTES_OF_AN_ENTRY), budget))
        if len(parts) == 1:
            yield self
            return
        for part in parts:
            which = torch.arange(part.start, part.stop, device=instances.device)
            nodes = slice(int(instances.ptr[part.start]), int(instances.ptr[part.stop]))
            label = None if target.label is None else target.label[which]
            yield replace(
                self,
                instances=instances.select(which),
                target=Target(target.prediction[which], label, target.scale[which]),
                embedding=self.embedding[nodes],
                evidence=None if self.evidence is None else self.evidence[nodes],
                graphs=self.graphs[part],
                shown=self.shown[part],
            )


class NodeQuestions:
    """Predictions at nodes of one graph.

    Args:
        predictor: The model.
        graph: The whole graph.
        index: The nodes; all if ``None``.
        target: Classes or values to hold instead of the predicted ones: one a node of the graph, or one each.
        graph_index: The index of the graph, where it has been built already.
        limit: Bound on the nodes of an instance.
    """

    def __init__(
        self,
        predictor: Predictor,
        graph: UserGraph,
        index: Any,
        target: Any,
        *,
        graph_index: GraphIndex | None = None,
        limit: int | None = None,
    ) -> None:
        self.predictor, self.graph, self._limit = predictor, graph, limit
        given = graph.detached()
        number = check_features(given.x)
        if graph_index is None:
            graph_index = GraphIndex.build(given.edge_index, number)
        graph_index.refuse_another(given.edge_index, number)
        every = torch.arange(number, device=given.x.device) if index is None else None
        self.nodes = check_index(index, number, given.x.device) if every is None else every
        self._given = _labels(predictor, target, self.nodes, number)
        self._detached, self._index = given, graph_index
        self._observer = Observer(predictor, given.x, given.edge_index, given.arguments, graph_index, limit)

    def __len__(self) -> int:
        return self.nodes.numel()

    @property
    def total(self) -> int:
        """Number of nodes of the graph, asked about or not."""
        return self._index.num_nodes

    def question(self, which: slice) -> Question:
        """Cuts out the instances ``which``."""
        return self._cut(self.nodes[which], None if self._given is None else self._given[which])

    def at(self, nodes: Tensor) -> Question:
        """Cuts out the instances of any nodes of the graph, with the model's own predictions."""
        return self._cut(nodes, None)

    def labels_at(self, nodes: Tensor) -> tuple[Tensor | None, int]:
        """Tells which class the model predicts at nodes, ``[I]``, and how many nodes the largest instance there has."""
        instances = self._instances(nodes)
        return Target.of(self.predictor, instances).label, int(instances.node_counts.max())

    def _instances(self, nodes: Tensor) -> Instances:
        graph, hops = self._detached, self.predictor.num_hops
        bounds: dict[str, Any] = {"graph_index": self._index, "limit": self._limit}
        return Instances.around_nodes(graph.x, graph.edge_index, nodes, hops, **bounds, **graph.arguments)

    def _cut(self, nodes: Tensor, label: Tensor | None) -> Question:
        instances, predictor = self._instances(nodes), self.predictor
        # What was predicted is what the model says with everything there, not on the instance alone.
        seen = self._observer.at(instances)
        evidence = predictor.read(seen.output)
        whole = evidence[instances.center]
        if label is not None:
            # The same node may be asked about with several targets: these are different instances.
            instances = _named(instances, combine(instances.graph, _row_hash(label)))
        target = Target.of(predictor, instances, label, prediction=whole)
        shown = self._shown(instances, seen, evidence, label)
        return Question(predictor, instances, target, seen.embedding, evidence, [self.graph] * len(nodes), shown)

    def _shown(
        self, instances: Instances, seen: Observation, evidence: Tensor, label: Tensor | None
    ) -> list[dict[str, Tensor | SparseRows]]:
        """Puts together what PyG keeps of a prediction: of all nodes where all were asked, else of those around."""
        regression, size = self.predictor.mode == "regression", self._detached.x.size(0)
        everywhere, shown = self._observer.whole, []
        held = seen.output if regression else evidence.argmax(dim=1)
        if everywhere is not None:
            prediction: Any = everywhere.output
            targets = prediction if regression else self.predictor.read(prediction).argmax(dim=1)
        ptr = instances.ptr.tolist()
        for i, node in enumerate(instances.node_id[instances.center]):
            if everywhere is None:
                part = slice(ptr[i], ptr[i + 1])
                place = instances.node_id[part]
                prediction = SparseRows(seen.output[part], place, size, fill=torch.nan)
                own = held[part]
                if label is not None:
                    own = _with_row(own, instances.center[i] - ptr[i], label[i])
                target: Any = SparseRows(own, place, size, fill=torch.nan if regression else -1)
            else:
                target = targets if label is None else _with_row(targets, node, label[i])
            shown.append({"prediction": prediction, "target": target, "index": node.reshape(1)})
        return shown


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
            check_finite(graph.x, where=f"graph {number}")
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
