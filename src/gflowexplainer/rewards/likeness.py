"""What nodes like it add to a value: an instance's own evidence, brought nearer to that of others of its kind.

What is lost without a node is lost in this very graph, with all that a hole does to others. Where a value is a sum over
nodes, as Crippen's logP is over atoms, those of one kind with neighbours of the same kinds add about the same wherever
they are, and what differs is chance. So what a node adds is described by its kind and by those around it. Where that
predicts nearly all of what was measured in graphs that it was not fitted to, a node counts half by what was measured of
it and half by what is usual of its like, and masks follow that nearly alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import segment_sum
from gflowexplainer.rewards.evidence import PAIR_RIDGE, RIDGE, Evidence, basis_of, has_shared, raw_evidence
from gflowexplainer.rewards.least_squares import LeastSquares, Regularization, held_out

ALIKE = 0.85
"""Share of what nodes of a graph add that their kinds must predict, in graphs that were not fitted."""
SHARE = 0.5
"""Weight of the expected contribution of a node's kind."""
PLAINLY = 6.0
"""How many times as much own evidence counts in masks there: the value is a sum over nodes, not over subgraphs."""
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Surroundings:
    """The kind of each node, and of the nodes around it.

    Attributes:
        kind: How much each node is of each kind, shape ``[n, D]``.
        around: The sum of that over its neighbours, shape ``[n, D]``.
        degree: Their number, shape ``[n]``.
    """

    kind: Tensor
    around: Tensor
    degree: Tensor

    @classmethod
    def of(cls, instances: Instances, raw: Tensor, basis: Tensor) -> Surroundings:
        """Looks at nodes that a ``basis`` ``[R, D]`` of their ``raw`` evidence ``[n, R]`` tells apart."""
        kind = Evidence.of(instances, raw, basis).kind
        around = segment_sum(kind[instances.neighbor], instances.neighbor_row, instances.num_nodes)
        return cls(kind, around, instances.degree.double())

    def describe(self, nodes: Tensor) -> Tensor:
        """Describes ``nodes`` ``[Q]``: their kinds, degrees, and neighbours by both kinds, ``[Q, D + 1 + D * D]``."""
        kind = self.kind[nodes]
        beside = kind[:, :, None] * self.around[nodes][:, None, :]
        return torch.cat([kind, self.degree[nodes, None], beside.flatten(1)], dim=1)

    def ridge(self) -> Tensor:
        """Returns the penalty of each standardised weight of a description, shape ``[D + 1 + D * D]``."""
        kinds = self.kind.size(1)
        return torch.tensor([RIDGE] * (kinds + 1) + [PAIR_RIDGE] * kinds**2, dtype=torch.double).to(self.kind)


@dataclass(frozen=True)
class Likeness:
    """What nodes of some kind, with edges to others of some kinds, usually add.

    Attributes:
        basis: Brings raw evidence of nodes to kinds, shape ``[R, D]``.
        weight: Weights of the description of a node in its surroundings, shape ``[P]``; empty where nothing is usual.
        level: What a node adds that is described by nothing.
    """

    basis: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.double))
    weight: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.double))
    level: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether what is usual counts at all."""
        return self.weight.numel() > 0

    def shrink(self, inputs: TaskInputs, own: Tensor, names: Tensor) -> Tensor:
        """Brings own evidence ``[n, 1]`` of instances nearer to what is usual of such nodes.

        Args:
            inputs: The instances, with what the model predicts for them.
            own: What each node adds, shape ``[n, 1]``.
            names: Which of their features are names, shape ``[V, 2]``.
        """
        if not self.counts:
            return own
        raw = raw_evidence(inputs, EvidenceType.shared, names=names)
        surroundings = Surroundings.of(inputs.instances, raw, self.basis)
        every = torch.arange(own.size(0), device=own.device)
        usual = torch.cat([surroundings.describe(nodes) @ self.weight for nodes in every.split(_ROWS_AT_ONCE)])
        return torch.lerp(own, (usual + self.level)[:, None].to(own), SHARE)

    def tensors(self) -> dict[str, Tensor]:
        """Returns everything as tensors, for a section of a file."""
        return {
            "likeness": torch.cat([self.weight, self.weight.new_tensor([self.level])]),
            "likeness_basis": self.basis,
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Likeness:
        """Reads what :meth:`tensors` gave."""
        stored = tensors["likeness"]
        return cls(tensors["likeness_basis"], stored[:-1], float(stored[-1]))

    def to(self, device: torch.device | str) -> Likeness:
        """Moves the weights to ``device``."""
        return replace(self, basis=self.basis.to(device), weight=self.weight.to(device))


def find_likeness(inputs: TaskInputs, own: Tensor, known: Tensor, names: Tensor, side: Tensor) -> Likeness:
    """Finds what nodes of each kind usually add to a value of graphs, if that is the same in other graphs.

    Args:
        inputs: The instances, with what the model predicts for them.
        own: What each node adds, shape ``[n, 1]``.
        known: Marks the nodes of which that is known, shape ``[n]``.
        names: Which of their features are names, shape ``[V, 2]``.
        side: The side of each instance, from 0; each is predicted by the others, shape ``[I]``.
    """
    instances = inputs.instances
    if inputs.target.label is not None or instances.level != "graph" or instances.num_types > 1:
        return Likeness()
    if len(inputs) == 1 or not has_shared(inputs, names):
        return Likeness()
    raw = raw_evidence(inputs, EvidenceType.shared, names=names)
    basis, nodes = basis_of(raw), torch.nonzero(known).flatten()
    surroundings = Surroundings.of(instances, raw, basis)
    described, owner, value = surroundings.describe(nodes), instances.owner[nodes], own[nodes, 0].double()
    ridge = surroundings.ridge()
    (alike,) = held_out(described, value, owner, None, 0, ridge, [Regularization()], side[owner])
    if alike < ALIKE:
        return Likeness()
    weight = LeastSquares(described, value, owner, None, ridge).weights(0, Regularization())[-1]
    return Likeness(basis, weight, float((value - described @ weight).mean()))
