"""What every explainer is given, what it gives back, and the two calls in between.

An explainer is anything with a ``name``, a :meth:`~Explainer.fit` and an :meth:`~Explainer.explain`. It is handed a
:class:`Subject` (the inputs of a task of the library, and what the benchmark says about them) and returns
:class:`Scores` that are aligned with it. The instances it is fitted on and those it explains may differ: the inductive
setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, edge_values, marginals
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.model.tasks import task_of
from gflowexplainer.ops.segments import segment_max

if TYPE_CHECKING:
    from gflowbench.datasets import Benchmark

DEFAULT_MAX_NODES = 6
"""Size bound of an explanation where neither the user nor a motif says how large one is."""


@dataclass(frozen=True)
class Subject(TaskInputs):
    """The inputs of a task, and what its benchmark says about them.

    Attributes:
        name: Name of the benchmark.
        max_nodes: Number of nodes that an explanation should have at most; one more than a motif has.
    """

    name: str = ""
    max_nodes: int = DEFAULT_MAX_NODES

    @classmethod
    def of(  # type: ignore[override]
        cls,
        model: nn.Module,
        benchmark: Benchmark,
        index: Tensor | Sequence[int] | None = None,
        *,
        max_nodes: int | None = None,
        return_type: str = "raw",
        num_hops: int | None = None,
        mode: str | None = None,
    ) -> Subject:
        """Cuts the instances of a benchmark out and evaluates the model on them, on the model's device.

        Args:
            model: The model to explain; attributes of the graphs that its ``forward`` takes by name are passed along.
            benchmark: Its graphs; ``benchmark.index`` names the instances.
            index: Other ids to explain instead of those.
            max_nodes: Size bound of an explanation; by default the benchmark's motif size and one more.
            return_type: What the model returns: ``"raw"`` scores, ``"probs"`` or ``"log_probs"``.
            num_hops: Message-passing layers of the model; the benchmark's if not given, or counted.
            mode: What it predicts; the benchmark's if not given.
        """
        if max_nodes is None:
            size = motif_size(benchmark)
            max_nodes = DEFAULT_MAX_NODES if size is None else size + 1
        if max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {max_nodes}).")
        device = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
        ids = torch.as_tensor(benchmark.index if index is None else index, device=device).reshape(-1)
        hops = benchmark.num_layers if num_hops is None else num_hops
        predictor = Predictor(
            model, level=benchmark.task, mode=mode or benchmark.mode, return_type=return_type, num_hops=hops
        )
        graphs = [graph.to(device) for graph in benchmark.graphs]
        task = task_of(predictor, graphs[0] if benchmark.task == "node" else graphs, index=ids)
        return cls(**vars(task.inputs()), name=benchmark.name, max_nodes=max_nodes)

    def wider(self, steps: int) -> Subject:
        """Returns the same predictions with their instances cut out ``steps`` wider than the model looks.

        Graphs are whole already, and inputs that were put together by hand cannot be cut out again: both stay.
        """
        if steps == 0 or self.instances.level != "node" or self.data is None:
            return self
        known = self.predictor
        predictor = Predictor(
            known.model,
            level=known.level,
            mode=known.mode,
            return_type=known.return_type,
            num_hops=known.num_hops + steps,
        )
        inputs = task_of(predictor, self.data, index=self.index).inputs()
        return replace(self, **vars(inputs) | {"target": self.target})

    @property
    def model(self) -> nn.Module:
        """The explained model."""
        return self.predictor.model

    @property
    def request(self) -> dict[str, Any]:
        """What a user passes to explain these instances: the arguments of ``GFlowExplainer.explain``."""
        config = {name: getattr(self.predictor, name) for name in ("mode", "return_type")}
        config["task_level"] = self.predictor.level
        return {"model": self.model, "data": self.data, "index": self.index, "model_config": config}


@dataclass(frozen=True)
class Scores:
    """How important each node and edge of ``I`` instances is; only the order of the numbers counts.

    Attributes:
        node: Score of each node, shape ``[n]``.
        edge: Score of each directed edge entry, shape ``[e]``.
        order: Nodes in the order they were picked, shape ``[I, K]``, ``-1`` fills up; ``None`` if the
            explainer picks nothing, so that the nodes are ordered by score.
        selected: Which nodes are the explanation, shape ``[n]``; ``None`` if the best ones are.
        signed: What each node says for the class or value, with its sign, shape ``[n]``; ``None`` where the explainer
            knows no sign.
    """

    node: Tensor
    edge: Tensor
    order: Tensor | None = None
    selected: Tensor | None = None
    signed: Tensor | None = None

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

    An explainer whose scores do not depend on the seed may say so by an attribute ``deterministic = True``
    and is then run with one seed only.
    """

    name: str

    def fit(self, subject: Subject, seed: int) -> None:
        """Learns from the instances of ``subject``; an explainer that learns nothing does nothing here."""
        ...

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores the nodes and edges of the instances of ``subject``."""
        ...


def motif_size(benchmark: Benchmark) -> int | None:
    """Number of nodes of a motif: what the benchmark says, else the median over its motifs, else ``None``."""
    if benchmark.motif_size is not None:
        return benchmark.motif_size
    sizes = [torch.bincount(graph.motif_id[graph.motif_id >= 0]) for graph in benchmark.graphs if "motif_id" in graph]
    found = torch.cat(sizes) if sizes else torch.empty(0, dtype=torch.long)
    found = found[found > 0]
    return int(found.median()) if found.numel() else None
