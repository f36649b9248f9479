"""A task with known truth: graphs, what is to be explained in them, and what decides each label or value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowexplainer.errors import DatasetError


class Combination(str, Enum):
    """How the parts of a truth decide the label."""

    ANY = "any"
    """Each part alone decides it."""
    ALL = "all"
    """Only all parts together decide it."""
    NONE = "none"
    """Nothing decides it: the label says that something is absent, or is noise."""
    CONTRIBUTIONS = "contributions"
    """The value is the sum of what the nodes contribute."""


@dataclass(frozen=True, eq=False)
class TaskTruth:
    """What decides the label or value of one instance. It is kept apart from the graph, so no explainer sees it.

    Attributes:
        num_nodes: Nodes ``N`` of the graph.
        combination: How the parts decide together.
        parts: Node sets, each ascending; for :attr:`Combination.CONTRIBUTIONS` the motifs that contribute.
        contributions: Signed contribution of each node to the value, 0 for those not named; ``None`` for classes.
    """

    num_nodes: int
    combination: Combination
    parts: tuple[tuple[int, ...], ...] = ()
    contributions: Mapping[int, float] | None = None

    def __post_init__(self) -> None:
        """Refuses truths that contradict themselves."""
        summed = self.combination is Combination.CONTRIBUTIONS
        if summed != (self.contributions is not None):
            raise DatasetError(f"Contributions belong to a sum, and to nothing else (got '{self.combination.value}').")
        if (self.combination in (Combination.ANY, Combination.ALL)) != bool(self.parts) and not summed:
            raise DatasetError(f"'{self.combination.value}' does not go with {len(self.parts)} parts.")
        if any(not 0 <= node < self.num_nodes for part in self.parts for node in part):
            raise DatasetError(f"A part names a node outside of [0, {self.num_nodes}) (got {self.parts}).")

    @property
    def signed(self) -> Tensor:
        """Signed contribution of each node, shape ``[N]``; all 0 for classes."""
        values = torch.zeros(self.num_nodes, dtype=torch.double)
        for node, value in (self.contributions or {}).items():
            values[node] = value
        return values

    @property
    def union(self) -> Tensor:
        """Whether each node lies in any part, shape ``[N]``.

        A sum without parts (every node contributes something) counts the nodes whose absolute contribution is
        above the mean of the graph.
        """
        if self.contributions is not None and not self.parts:
            size = self.signed.abs()
            return size > size.mean()
        mask = torch.zeros(self.num_nodes, dtype=torch.bool)
        mask[[node for part in self.parts for node in part]] = True
        return mask

    def within(self, nodes: Tensor) -> TaskTruth:
        """Returns the truth in terms of some of the nodes.

        Args:
            nodes: The ``n`` nodes that are left, which become ``0 .. n - 1``; what lies outside is dropped.
        """
        new = {node: number for number, node in enumerate(nodes.tolist())}
        parts = (tuple(sorted(new[node] for node in part if node in new)) for part in self.parts)
        kept = tuple(part for part in parts if part)
        values = self.contributions
        if values is not None:
            values = {new[node]: value for node, value in values.items() if node in new}
        how = self.combination if kept or values is not None else Combination.NONE
        return TaskTruth(len(new), how, kept, values)


@dataclass(frozen=True, eq=False)
class SuiteTask:
    """Graphs with labels or values and the truth of each instance.

    Attributes:
        name: Name of the task, such as ``"and-far"``.
        level: ``"graph"``, or ``"node"``: then there is one graph.
        mode: ``"multiclass_classification"`` or ``"regression"``, as PyG calls it.
        graphs: The graphs, with ``x`` ``[N, F]``, ``edge_index`` ``[2, E]`` and ``y``.
        truths: Truth by instance: position of the graph, or node id. Instances without an entry are not explained.
        splits: Instances of ``"train"``, ``"val"`` and ``"test"``.
        num_classes: Number of classes; 1 for regression.
        num_layers: Message-passing steps that a GNN needs for it.
        hidden_channels: Width that a GNN needs for it.
    """

    name: str
    level: str
    mode: str
    graphs: list[Data]
    truths: dict[int, TaskTruth]
    splits: dict[str, Tensor]
    num_classes: int = 2
    num_layers: int = 3
    hidden_channels: int = 32
    provenance: str = field(default="generated")

    @property
    def is_regression(self) -> bool:
        """Whether values are predicted, not classes."""
        return self.mode == "regression"

    @property
    def model_config(self) -> dict[str, str]:
        """Mode, level and return type of a GNN of this task, as PyG's ``Explainer`` takes them."""
        return {"mode": self.mode, "task_level": self.level, "return_type": "raw"}

    def labels(self, instances: Tensor) -> Tensor:
        """Returns the class or value of each of ``I`` instances, shape ``[I]``."""
        if self.level == "node":
            return self.graphs[0].y[instances]
        return torch.cat([self.graphs[i].y.view(-1) for i in instances.tolist()])

    def instances(self, combinations: Sequence[Combination] | None = None) -> list[int]:
        """Returns the test instances to explain, in order.

        Args:
            combinations: Only those whose truth combines like this; by default all that have something to find.
        """
        wanted = set(Combination) - {Combination.NONE} if combinations is None else set(combinations)
        test = self.splits["test"].tolist()
        return [i for i in test if i in self.truths and self.truths[i].combination in wanted]


def split(num_instances: int, *, val: float = 0.1, test: float = 0.2) -> dict[str, Tensor]:
    """Cuts ``num_instances`` that are already in random order into train, validation and test instances."""
    num_val, num_test = round(val * num_instances), round(test * num_instances)
    ends = [num_instances - num_val - num_test, num_instances - num_test]
    everything = torch.arange(num_instances)
    return {"train": everything[: ends[0]], "val": everything[ends[0] : ends[1]], "test": everything[ends[1] :]}
