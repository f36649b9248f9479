"""The inputs of a task: a flat batch of instances, with everything that the model predicts for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import ranges, slices
from gflowexplainer.ops.sparse_rows import SparseRows

BYTES_OF_AN_ENTRY = 128
"""What rollouts keep of a node that they might add, about; not counting the network, which takes them in parts."""

Inputs = TypeVar("Inputs", bound="TaskInputs")
Fields = dict[str, Tensor | SparseRows]
"""Fields of a PyG explanation."""


def no_fields(position: int) -> Fields:
    """Returns nothing: what nobody is to be shown repeats nothing."""
    return {}


@dataclass(frozen=True)
class TaskInputs:
    """``I`` instances of a model's predictions with ``n`` nodes in total, ready to be trained on or explained.

    Attributes:
        predictor: The model.
        instances: The instances.
        target: What is to be preserved.
        embedding: The model's embeddings at the nodes of the instances, shape ``[n, H]``, where they are known.
        node_prediction: What the model predicts at the nodes of the instances, shape ``[n, C]``; ``None`` at graph
            level, where nodes have no class, and where it is not known.
        index: The user's id of each instance, shape ``[I]``: node ids, or positions of graphs.
        graphs: The graph that each instance lies in; empty where nobody is to be shown an explanation.
        fields: Returns what the explanation at a position repeats: ``prediction``, ``target`` and ``index``, as PyG has
            them. On a large graph the first two are only known around the explained node.
        data: The graph or graphs as the user passed them.
        counted: Whether ``index`` holds positions of graphs that the user passed several of.
    """

    predictor: Predictor
    instances: Instances
    target: Target
    embedding: Tensor | None = None
    node_prediction: Tensor | None = None
    index: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    graphs: Sequence[InputGraph] = ()
    fields: Callable[[int], Fields] = no_fields
    data: Any = None
    counted: bool = False

    @classmethod
    def of(
        cls: type[Inputs], predictor: Predictor, instances: Instances, target: Target | None = None, **more: Any
    ) -> Inputs:
        """Puts inputs together by hand; without a target, the model's own prediction is preserved."""
        return cls(predictor, instances, Target.of(predictor, instances) if target is None else target, **more)

    def __len__(self) -> int:
        return len(self.instances)

    def require_embedding(self) -> Tensor:
        """Returns the model's embeddings, or says that they are needed."""
        if self.embedding is None:
            raise ConfigError("The explained model's embeddings are needed here. Pass 'embedding'.")
        return self.embedding

    def select(self: Inputs, index: Tensor) -> Inputs:
        """Takes the instances ``index``, positions in these inputs, as inputs of their own."""
        _, nodes = ranges(self.instances.ptr[index], self.instances.node_counts[index])
        places = index.tolist()
        return replace(
            self,
            instances=self.instances.select(index),
            target=self.target.select(index),
            embedding=None if self.embedding is None else self.embedding[nodes],
            node_prediction=None if self.node_prediction is None else self.node_prediction[nodes],
            index=self.index[index] if self.index.numel() else self.index,
            graphs=[self.graphs[place] for place in places] if self.graphs else self.graphs,
            fields=lambda position: self.fields(places[position]),
        )

    def halves(self: Inputs) -> list[Inputs]:
        """Takes the instances apart into two batches."""
        return [self.select(half) for half in torch.arange(len(self), device=self.instances.device).chunk(2)]

    def split(self: Inputs, states: int, budget: int) -> Iterator[Inputs]:
        """Takes the instances apart into batches on which so many ``states`` each fit into a budget in bytes.

        The frontier of a state is counted as the whole instance.
        """
        parts = []
        if len(self) > 1:
            parts = list(slices(self.instances.node_counts * (states * BYTES_OF_AN_ENTRY), budget))
        if len(parts) <= 1:
            yield self
            return
        for part in parts:
            yield self.select(torch.arange(part.start, part.stop, device=self.instances.device))
