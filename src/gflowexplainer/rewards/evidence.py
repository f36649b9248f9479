"""What a subgraph is made of, in a few numbers that mean the same in every instance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_edges
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.occlusion import losses

MAX_KINDS = 16
"""Columns of node evidence that are kept; of more, this many principal components are."""
_ROWS_AT_ONCE = 8192
_NO_SPREAD = 1e-6


@dataclass(frozen=True)
class Evidence:
    """What the model makes of each node, and from it a description of any subgraph.

    The description of a subgraph counts its nodes by kind, its nodes and its inner edges. "Kind" is soft: at node level
    the class probabilities that the model predicts at the node, which know of its surroundings already; at graph level
    its input features, which do not, and at either level what the model loses without it. At graph level the inner
    edges are also counted by the kinds of both ends.

    Attributes:
        instances: Instances with ``n`` nodes.
        kind: How much each node is of each kind, shape ``[n, D]``.
    """

    instances: Instances
    kind: Tensor

    @property
    def _by_pair(self) -> bool:
        return self.instances.level == "graph"

    @classmethod
    def of(cls, instances: Instances, raw: Tensor, basis: Tensor) -> Evidence:
        """Brings raw evidence ``[n, R]`` to few columns by a ``basis`` ``[R, D]`` of :func:`basis_of`."""
        if raw.size(1) != basis.size(0):
            raise ConfigError(
                f"The evidence of a node has {raw.size(1)} columns, but {basis.size(0)} were learned from."
            )
        return cls(instances, raw.double() @ basis)

    @property
    def num_columns(self) -> int:
        """Length ``P`` of a description."""
        kinds = self.kind.size(1)
        return kinds + 2 + (kinds * (kinds + 1) // 2 if self._by_pair else 0)

    def describe(self, subgraphs: Subgraphs) -> Tensor:
        """Describes ``B`` subgraphs: nodes by kind, nodes, edges, edges by pair of kinds, shape ``[B, P]``."""
        every = torch.arange(len(subgraphs), device=subgraphs.instance.device)
        return torch.cat([self._describe(subgraphs[rows]) for rows in every.split(_ROWS_AT_ONCE)])

    def _describe(self, subgraphs: Subgraphs) -> Tensor:
        row, slot = torch.nonzero(subgraphs.filled, as_tuple=True)
        nodes = self.kind.new_zeros(len(subgraphs), self.kind.size(1))
        nodes.index_add_(0, row, self.kind[subgraphs.members[row, slot]])
        row, one, other, _ = inner_edges(self.instances, subgraphs)
        kinds = self._pairs(subgraphs.members[row, one], subgraphs.members[row, other])
        edges = self.kind.new_zeros(len(subgraphs), 1 + kinds.size(1))
        edges.index_add_(0, row, torch.cat([kinds.new_ones(kinds.size(0), 1), kinds], dim=1))
        return torch.cat([nodes, subgraphs.size[:, None].to(nodes), edges], dim=1)

    def _pairs(self, one: Tensor, other: Tensor) -> Tensor:
        """Returns the kinds of edges between nodes, both ``[Q]``, shape ``[Q, D (D + 1) / 2]``, or ``[Q, 0]``."""
        if self._by_pair:
            return pair_products(self.kind[one], self.kind[other])
        return self.kind.new_zeros(one.numel(), 0)

    def node_values(self, weight: Tensor) -> Tensor:
        """Values every node by the weights ``[I, P]`` of its instance, shape ``[n]``."""
        own = weight[self.instances.owner, : self.kind.size(1)]
        return (self.kind * own).sum(dim=1)

    def entry_values(self, weight: Tensor) -> Tensor:
        """Values every neighbour entry by the weights ``[I, P]`` of its instance, shape ``[m]``."""
        kinds, instances = self.kind.size(1), self.instances
        row = instances.neighbor_row
        values = []
        for part in torch.arange(row.numel(), device=weight.device).split(_ROWS_AT_ONCE * 8):
            one, other = row[part], instances.neighbor[part]
            own = weight[instances.owner[one], kinds + 1 :]
            values.append(own[:, 0] + (self._pairs(one, other) * own[:, 1:]).sum(dim=1))
        return torch.cat(values) if values else self.kind.new_zeros(0)

    def is_pair(self) -> Tensor:
        """Marks the columns of a description that count edges by kinds, shape ``[P]``."""
        place = torch.arange(self.num_columns, device=self.kind.device)
        return place >= self.kind.size(1) + 2


def pair_products(one: Tensor, other: Tensor) -> Tensor:
    """Returns the symmetric products of two rows of kinds, both ``[Q, D]``, shape ``[Q, D (D + 1) / 2]``."""
    first, second = torch.triu_indices(one.size(1), one.size(1), device=one.device)
    return one[:, first] * other[:, second] + one[:, second] * other[:, first]


def basis_of(raw: Tensor) -> Tensor:
    """Finds few directions that raw evidence ``[n, R]`` is told apart by, shape ``[R, D]`` with at most 16 columns.

    Columns that vary are kept as they are, if they are few. Of more, the principal components are taken, each with a
    fixed sign and spread 1.
    """
    raw = raw.double()
    centred = raw - raw.mean(dim=0)
    varies = centred.abs().amax(dim=0) > 1e-9
    basis = torch.eye(raw.size(1), dtype=torch.double, device=raw.device)[:, varies]
    if basis.size(1) <= MAX_KINDS:
        return basis
    _, directions = torch.linalg.eigh(centred.t() @ centred)
    basis = directions[:, -MAX_KINDS:].flip(1)
    largest = basis.gather(0, basis.abs().argmax(dim=0, keepdim=True))
    basis = basis * torch.where(largest < 0, -1.0, 1.0)
    spread = (centred @ basis).std(dim=0, correction=0)
    # Along directions in which these nodes do not differ, other nodes would be blown up.
    tells = spread > _NO_SPREAD * spread[0]
    return basis[:, tells] / spread[tells]


def has_shared(inputs: TaskInputs) -> bool:
    """Says whether nodes of different instances can be told apart by the same few columns."""
    return inputs.instances.level == "node" or inputs.instances.x.size(1) <= MAX_KINDS


def raw_evidence(inputs: TaskInputs, kind: EvidenceType, own: Tensor | None = None) -> Tensor:
    """Returns what the consensus tells nodes apart by, shape ``[n, R]``.

    ``"shared"``: what means the same in every instance; at node level what the model predicts there, at graph level the
    node's features. ``"own"``: what the model loses without the node in this very instance, for which it is evaluated
    once a node. ``"both"``: these columns side by side.

    Args:
        inputs: The instances, with what the model says of them.
        kind: Which columns.
        own: The :func:`~gflowexplainer.rewards.occlusion.losses`, where they are known already.
    """
    columns = []
    if kind != EvidenceType.own:
        columns.append(_shared(inputs).double())
    if kind != EvidenceType.shared:
        own = losses(inputs.predictor, inputs.instances, inputs.target) if own is None else own
        columns.append(own.double())
    return torch.cat(columns, dim=1)


def _shared(inputs: TaskInputs) -> Tensor:
    if inputs.instances.level == "graph":
        return inputs.instances.x
    if inputs.node_prediction is None:
        raise ConfigError(
            "The consensus reward needs what the model predicts at every node. Pass 'node_prediction' or use "
            "reward='context'."
        )
    return inputs.node_prediction
