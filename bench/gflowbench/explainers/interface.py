"""What every explainer is given, what it gives back, and the two calls in between.

An explainer is anything with a ``name``, a :meth:`~Explainer.fit` and an :meth:`~Explainer.explain`. It is
handed a :class:`Subject` (the model and a flat batch of instances) and returns :class:`Scores` that are
aligned with it. The instances it is fitted on and those it explains may differ: the inductive setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from gflowexplainer.errors import ConfigError, InstanceError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, edge_values, marginals
from gflowexplainer.model.predictor import Predictor, observe
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import ranges, segment_max

if TYPE_CHECKING:
    from gflowbench.datasets import Benchmark

DEFAULT_MAX_NODES = 6
"""Size bound of an explanation where neither the user nor a motif says how large one is."""


@dataclass(frozen=True)
class Subject:
    """A model and ``I`` instances of its predictions to explain, with ``n`` nodes and ``e`` edges in total.

    Attributes:
        predictor: The explained model.
        instances: The instances.
        target: What the model predicts on the instances, shape ``[I, C]``, and the class to hold, shape
            ``[I]``: the one predicted on the whole graph.
        node_probabilities: Class probabilities of every node as predicted on the whole graph, shape
            ``[n, C]``; ``None`` at graph level, where nodes have no class.
        embedding: Outputs of the model's message-passing layers at every node, shape ``[n, H]``.
        index: The user's id of each instance, shape ``[I]``: node ids, or positions of graphs.
        name: Name of the benchmark.
        max_nodes: Number of nodes that an explanation should have at most; one more than a motif has.
    """

    predictor: Predictor
    instances: Instances
    target: Target
    node_probabilities: Tensor | None
    embedding: Tensor
    index: Tensor
    name: str
    max_nodes: int

    @classmethod
    def of(
        cls,
        model: nn.Module,
        benchmark: Benchmark,
        index: Tensor | Sequence[int] | None = None,
        *,
        max_nodes: int | None = None,
        return_type: str = "raw",
        num_hops: int | None = None,
        arguments: Sequence[str] = (),
    ) -> Subject:
        """Cuts the instances of a benchmark out and asks the model about them, on the model's device.

        Args:
            model: The model to explain.
            benchmark: Its graphs; ``benchmark.index`` names the instances.
            index: Other ids to explain instead of those.
            max_nodes: Size bound of an explanation; by default the benchmark's motif size and one more.
            return_type: What the model returns: ``"raw"`` scores, ``"probs"`` or ``"log_probs"``.
            num_hops: Message-passing layers of the model; counted if not given.
            arguments: Names of attributes of each graph that the model takes beside ``x`` and ``edge_index``.
        """
        if max_nodes is None:
            size = motif_size(benchmark)
            max_nodes = DEFAULT_MAX_NODES if size is None else size + 1
        if max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {max_nodes}).")
        device = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
        ids = torch.as_tensor(benchmark.index if index is None else index, device=device).reshape(-1)
        predictor = Predictor(model, level=benchmark.task, return_type=return_type, num_hops=num_hops)
        probabilities = None
        if benchmark.task == "node":
            graph = benchmark.graphs[0].to(device)
            given = {name: graph[name] for name in arguments}
            instances = Instances.around_nodes(graph.x, graph.edge_index, ids, predictor.num_hops, **given)
            output, embedding = observe(model, graph.x, graph.edge_index, given)
            probabilities = predictor.read(predictor.checked(output, graph.x.size(0)))[instances.node_id]
            embedding = embedding[instances.node_id]
            prediction = probabilities[instances.center]
        else:
            _check_positions(ids, len(benchmark.graphs))
            # All graphs first: the number of a graph, and with it all noise, is the same in every subset.
            whole = Instances.of_graphs([g.to(device) for g in benchmark.graphs], arguments=arguments)
            instances = whole.select(ids)
            given = instances.node_arguments | instances.edge_arguments | instances.shared_arguments
            given |= {"batch": instances.owner}
            output, embedding = observe(model, instances.x, instances.edge_index, given)
            prediction = predictor.read(predictor.checked(output, len(instances)))
        return cls(
            predictor=predictor,
            instances=instances,
            target=Target.of(predictor, instances, prediction=prediction),
            node_probabilities=probabilities,
            embedding=embedding,
            index=ids,
            name=benchmark.name,
            max_nodes=max_nodes,
        )

    def __len__(self) -> int:
        return len(self.instances)

    def select(self, index: Tensor) -> Subject:
        """Takes the instances ``index``, positions in this subject, as a subject of their own."""
        _, nodes = ranges(self.instances.ptr[index], self.instances.node_counts[index])
        target, probabilities = self.target, self.node_probabilities
        return replace(
            self,
            instances=self.instances.select(index),
            target=Target(
                target.prediction[index],
                None if target.label is None else target.label[index],
                target.scale[index],
            ),
            node_probabilities=None if probabilities is None else probabilities[nodes],
            embedding=self.embedding[nodes],
            index=self.index[index],
        )


@dataclass(frozen=True)
class Scores:
    """How important each node and edge of ``I`` instances is; only the order of the numbers counts.

    Attributes:
        node: Score of each node, shape ``[n]``.
        edge: Score of each directed edge entry, shape ``[e]``.
        order: Nodes in the order they were picked, shape ``[I, K]``, ``-1`` fills up; ``None`` if the
            explainer picks nothing, so that the nodes are ordered by score.
        selected: Which nodes are the explanation, shape ``[n]``; ``None`` if the best ones are.
    """

    node: Tensor
    edge: Tensor
    order: Tensor | None = None
    selected: Tensor | None = None

    @classmethod
    def of_subgraphs(cls, instances: Instances, subgraphs: Subgraphs, weight: Tensor) -> Scores:
        """Scores nodes and edges by the weight ``[B]`` of the subgraphs that hold them."""
        node, edge = marginals(instances, subgraphs, weight)
        return cls(node, edge_values(instances, edge))

    @classmethod
    def of_order(cls, instances: Instances, order: Tensor, max_nodes: int | None = None) -> Scores:
        """Scores one generated subgraph for each instance by the order of its nodes.

        An edge whose later end is the i-th pick (from 0) of at most ``K`` scores ``(K - i) / (K - 1)``, an
        edge that is not inside 0.

        Args:
            instances: The instances.
            order: Nodes in the order they were picked, shape ``[I, K]``; ``-1`` fills up.
            max_nodes: The bound ``K``; by default the width of ``order``.
        """
        bound = order.size(1) if max_nodes is None else max_nodes
        place = torch.arange(order.size(1), device=order.device).expand_as(order)
        remaining = torch.zeros(instances.num_nodes, dtype=torch.double, device=order.device)
        picked = order >= 0
        remaining[order[picked]] = (bound - place[picked]).double()
        source, target = instances.edge_index
        inside = torch.minimum(remaining[source], remaining[target]) / max(bound - 1, 1)
        return cls(remaining / bound, torch.where(source == target, 0.0, inside), order=order)

    @classmethod
    def of_nodes(cls, instances: Instances, node: Tensor) -> Scores:
        """Scores an edge by the smaller score of its two ends, as an edge is inside if both ends are."""
        source, target = instances.edge_index
        return cls(node, torch.minimum(node[source], node[target]))

    @classmethod
    def of_edges(cls, instances: Instances, edge: Tensor) -> Scores:
        """Scores a node by its best edge; a node without edges gets the lowest score of all."""
        lowest = float(edge.min()) if edge.numel() else 0.0
        best = segment_max(edge.repeat(2), instances.edge_index.flatten(), instances.num_nodes, empty=lowest)
        return cls(best, edge)

    def check(self, instances: Instances, name: str) -> None:
        """Refuses scores that do not fit the instances; ``name`` is the explainer's."""
        wanted = {"node": (self.node, instances.num_nodes), "edge": (self.edge, instances.edge_index.size(1))}
        if self.selected is not None:
            wanted["selected"] = (self.selected, instances.num_nodes)
        for field, (value, length) in wanted.items():
            if value.shape != (length,):
                raise ConfigError(
                    f"Explainer '{name}' returned '{field}' of shape {list(value.shape)}, but the instances "
                    f"have {length} of them. Return one value each."
                )
            if not torch.isfinite(value).all():
                raise ConfigError(f"Explainer '{name}' returned NaN or infinity in '{field}'. Return finite scores.")
        if self.order is not None and (self.order.dim() != 2 or self.order.size(0) != len(instances)):
            raise ConfigError(
                f"Explainer '{name}' returned 'order' of shape {list(self.order.shape)}, but there are "
                f"{len(instances)} instances. Return one row each."
            )


@runtime_checkable
class Explainer(Protocol):
    """One protocol for all: ours, each peer and each floor.

    An explainer whose answer does not depend on the seed may say so by an attribute ``deterministic = True``
    and is then run with one seed only.
    """

    name: str

    def fit(self, subject: Subject, seed: int) -> None:
        """Learns from the instances of ``subject``; an explainer that learns nothing does nothing here."""
        ...

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores the nodes and edges of the instances of ``subject``."""
        ...


def _check_positions(ids: Tensor, count: int) -> None:
    wrong = ids[(ids < 0) | (ids >= count)]
    if ids.numel() == 0:
        raise InstanceError("'index' is empty. Pass at least one graph.")
    if wrong.numel():
        raise InstanceError(
            f"'index' names graph {int(wrong[0])}, but there are {count}. Pass positions in [0, {count})."
        )


def motif_size(benchmark: Benchmark) -> int | None:
    """Number of nodes of a motif: what the benchmark says, else the median over its motifs, else ``None``."""
    if benchmark.motif_size is not None:
        return benchmark.motif_size
    sizes = [torch.bincount(graph.motif_id[graph.motif_id >= 0]) for graph in benchmark.graphs if "motif_id" in graph]
    found = torch.cat(sizes) if sizes else torch.empty(0, dtype=torch.long)
    found = found[found > 0]
    return int(found.median()) if found.numel() else None
