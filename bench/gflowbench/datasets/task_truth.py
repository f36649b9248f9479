"""What decides each label or value of a task: node sets, together or each alone, or contributions to a sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

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
