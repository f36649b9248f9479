"""What a subgraph is made of, in a few numbers that mean the same in every instance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_edges
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.rewards.kinds import MAX_KINDS, find_categories, has_few_kinds, one_hot
from gflowexplainer.rewards.occlusion import losses

_ROWS_AT_ONCE = 8192
_FEW = 512
"""Nodes up to which NumPy is done before torch has begun."""
_NO_SPREAD = 1e-6
RIDGE, PAIR_RIDGE = 1e-3, 1e-2
"""Penalties of standardised weights; edges by kinds are many and rare, so they are held back more."""


@dataclass(frozen=True)
class Evidence:
    """What the model makes of each node, and from it a description of any subgraph.

    The description of a subgraph counts its nodes by kind, its nodes and its inner edges. "Kind" is soft: at node level
    the class probabilities that the model predicts at the node, which know of its surroundings already, and that of the
    explained class once more; at graph level its input features, which do not, and at either level what the model loses
    without it. Where features are kinds, the inner edges are also counted by the kinds of both ends. In a graph of
    several types, the type of a node is a kind, and inner edges are counted by relation.

    Attributes:
        instances: Instances with ``n`` nodes and ``m`` neighbour entries.
        kind: How much each node is of each kind, shape ``[n, D]``.
        paired: By how many of these kinds, the first ones, inner edges are counted.
    """

    instances: Instances
    kind: Tensor
    paired: int = 0

    @cached_property
    def _relation(self) -> Tensor:
        """Which relations join the ends of each neighbour entry, shape ``[m, R]``; ``[m, 0]`` with fewer than two."""
        instances = self.instances
        number, types = num_relations(instances), instances.edge_arguments.get("edge_type")
        found = self.kind.new_zeros(instances.neighbor.numel(), number)
        if number and types is not None:
            source, target = instances.edge_index
            for one, other in ((source, target), (target, source)):
                entry, there = find_sorted(instances.neighbor_key, one * instances.num_nodes + other)
                found[entry[there], types[there]] = 1
        return found

    @classmethod
    def of(cls, instances: Instances, raw: Tensor, basis: Tensor, kind: EvidenceType = EvidenceType.shared) -> Evidence:
        """Brings raw evidence ``[n, R]`` of a kind to few columns by a ``basis`` ``[R, D]`` of :func:`find_basis`."""
        if raw.size(1) != basis.size(0):
            raise ConfigError(
                f"The evidence of a node has {raw.size(1)} columns, but {basis.size(0)} were learned from, by another "
                "model or another version. Fit again."
            )
        features = _num_features(instances, kind)
        paired = int((basis[:features] != 0).any(dim=0).sum()) if features else 0
        if instances.level == "graph":
            paired = basis.size(1)
        if raw.is_cpu and raw.size(0) <= _FEW:
            # NumPy begins sooner.
            kinds = torch.from_numpy(raw.numpy().astype(np.float64, copy=False).dot(basis.numpy()))
        else:
            kinds = raw.double() @ basis
        return cls(instances, kinds, paired)

    @property
    def num_columns(self) -> int:
        """Length ``P`` of a description."""
        pairs = self.paired * (self.paired + 1) // 2
        return self.kind.size(1) + 2 + num_relations(self.instances) + pairs

    def describe(self, subgraphs: Subgraphs) -> Tensor:
        """Describes ``B`` subgraphs: nodes by kind, nodes, edges, edges by pair of kinds, shape ``[B, P]``."""
        every = torch.arange(len(subgraphs), device=subgraphs.instance.device)
        return torch.cat([self._describe(subgraphs[rows]) for rows in every.split(_ROWS_AT_ONCE)])

    def _describe(self, subgraphs: Subgraphs) -> Tensor:
        row, slot = torch.nonzero(subgraphs.filled, as_tuple=True)
        nodes = self.kind.new_zeros(len(subgraphs), self.kind.size(1))
        nodes.index_add_(0, row, self.kind[subgraphs.members[row, slot]])
        row, one, other, entry = inner_edges(self.instances, subgraphs)
        kinds = self._edge_kinds(subgraphs.members[row, one], subgraphs.members[row, other], entry)
        edges = self.kind.new_zeros(len(subgraphs), 1 + kinds.size(1))
        edges.index_add_(0, row, torch.cat([kinds.new_ones(kinds.size(0), 1), kinds], dim=1))
        return torch.cat([nodes, subgraphs.size[:, None].to(nodes), edges], dim=1)

    def _edge_kinds(self, one: Tensor, other: Tensor, entry: Tensor) -> Tensor:
        """Returns the kinds of edges between nodes, both ``[Q]``: relations, then pairs of kinds where they count."""
        relation = self._relation[entry]
        if self.paired:
            pairs = pair_products(self.kind[one, : self.paired], self.kind[other, : self.paired])
            return torch.cat([relation, pairs], dim=1)
        return relation

    def node_values(self, weight: Tensor) -> Tensor:
        """Values every node by the weights ``[I, P]`` of its instance, shape ``[n]``."""
        if weight.size(0) == 1 and weight.is_cpu:
            kind = self.kind.numpy()
            return torch.from_numpy((kind * weight.numpy()[0, : kind.shape[1]]).sum(axis=1))
        own = weight[:, : self.kind.size(1)]
        if weight.size(0) > 1:
            own = own.index_select(0, self.instances.owner)
        return (self.kind * own).sum(dim=1)

    def entry_values(self, weight: Tensor) -> Tensor:
        """Values every neighbour entry by the weights ``[I, P]`` of its instance, shape ``[m]``."""
        kinds, instances = self.kind.size(1), self.instances
        alike = not self.paired and not num_relations(instances)
        if alike and weight.size(0) == 1:
            return weight[0, kinds + 1].expand(instances.neighbor.numel())
        row = instances.neighbor_row
        if alike:
            return weight[:, kinds + 1].index_select(0, instances.owner.index_select(0, row))
        values = []
        for part in torch.arange(row.numel(), device=weight.device).split(_ROWS_AT_ONCE * 8):
            one, other = row[part], instances.neighbor[part]
            own = weight[instances.owner[one], kinds + 1 :]
            values.append(own[:, 0] + (self._edge_kinds(one, other, part) * own[:, 1:]).sum(dim=1))
        return torch.cat(values) if values else self.kind.new_zeros(0)

    def is_pair(self) -> Tensor:
        """Marks the columns of a description that count edges by kinds, shape ``[P]``."""
        place = torch.arange(self.num_columns, device=self.kind.device)
        return place >= self.kind.size(1) + 2 + num_relations(self.instances)


def ridge_of(evidence: Evidence) -> Tensor:
    """Returns the penalty of each standardised weight, shape ``[P]``."""
    return torch.where(evidence.is_pair(), PAIR_RIDGE, RIDGE).double()


def num_relations(instances: Instances) -> int:
    """Returns the number of relations that edges are counted by: 0 where there are fewer than two."""
    return instances.num_relations if instances.num_relations > 1 else 0


def pair_products(one: Tensor, other: Tensor) -> Tensor:
    """Returns the symmetric products of two rows of kinds, both ``[Q, D]``, shape ``[Q, D (D + 1) / 2]``."""
    first, second = torch.triu_indices(one.size(1), one.size(1), device=one.device)
    return one[:, first] * other[:, second] + one[:, second] * other[:, first]


def basis_of(raw: Tensor) -> Tensor:
    """Finds few directions that raw evidence ``[n, R]`` is told apart by, shape ``[R, D]`` with at most 16 columns.

    Columns that vary are kept as they are, if they are few; of equal ones the first. Of more, the principal components
    are taken, each with a fixed sign and spread 1.
    """
    raw = raw.double()
    centred = raw - raw.mean(dim=0)
    tells = centred.abs().amax(dim=0) > 1e-9
    equal = torch.unique(raw, dim=1, return_inverse=True)[1]
    tells &= (equal[:, None] == equal).triu(diagonal=1).sum(dim=0) == 0
    basis = torch.eye(raw.size(1), dtype=torch.double, device=raw.device)[:, tells]
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


def find_basis(instances: Instances, kind: EvidenceType, raw: Tensor) -> Tensor:
    """Finds the directions of raw evidence ``[n, R]`` of a kind; what features say around nodes has its own."""
    features = _num_features(instances, kind)
    if not features:
        return basis_of(raw)
    return torch.block_diag(basis_of(raw[:, :features]), basis_of(raw[:, features:]))


def has_shared(inputs: TaskInputs, names: Tensor) -> bool:
    """Returns whether nodes of different instances, with features of these ``names``, are told apart by few columns."""
    instances = inputs.instances
    return instances.level != "graph" or instances.num_types > 1 or has_few_kinds(instances.rows(), names)


def find_categories_of(inputs: TaskInputs) -> Tensor:
    """Returns the features of nodes of graphs that are names, shape ``[V, 2]``; none of typed graphs."""
    instances = inputs.instances
    by_features = instances.level == "graph" and instances.num_types == 1 and instances.other_end is None
    return find_categories(instances.rows() if by_features else instances.x[:0])


def raw_evidence(
    inputs: TaskInputs, kind: EvidenceType, own: Tensor | None = None, names: Tensor | None = None
) -> Tensor:
    """Returns what the consensus tells nodes apart by, shape ``[n, R]``.

    ``"shared"``: what means the same in every instance; at node level what the model predicts there, at graph level the
    node's features, and its type before them where there are several. ``"features"``: at node level, both of these, the
    features of neighbours of the explained node apart from those of nodes further away. Nothing is said of that node
    itself, which is in all subgraphs: it would only count for their size.
    ``"own"``: what the model loses without the node in this very instance, for which it is evaluated once a node.
    ``"both"``: shared and own columns side by side.

    Links have one kind, named ``"shared"``: type and few features of a node, and what the model loses without it if it
    lies on a way between both ends.

    Args:
        inputs: The instances, with what the model predicts for them.
        kind: Which columns.
        own: The :func:`~gflowexplainer.rewards.occlusion.losses`, where they are known already.
        names: Which features of nodes of graphs are names; see :func:`~gflowexplainer.rewards.kinds.find_categories`.
    """
    if inputs.instances.other_end is not None:
        return _link_evidence(inputs)
    columns = []
    if kind != EvidenceType.own:
        columns.append(_shared(inputs, names).double())
    if kind == EvidenceType.features and inputs.instances.level != "graph":
        columns = [_features_by_distance(inputs), columns[0].index_fill(0, inputs.instances.roots, 0.0)]
    if not kind.is_shared:
        own = losses(inputs.predictor, inputs.instances, inputs.target) if own is None else own
        columns.append(own.double())
    return columns[0] if len(columns) == 1 else torch.cat(columns, dim=1)


def _shared(inputs: TaskInputs, names: Tensor | None) -> Tensor:
    if inputs.instances.num_types > 1:
        return _typed_evidence(inputs)
    if inputs.instances.level == "graph":
        features = inputs.instances.rows()
        return features if names is None else one_hot(features, names)
    if inputs.node_prediction is None:
        raise ConfigError(
            "The consensus reward needs what the model predicts at every node. Pass 'node_prediction' or use "
            "reward='context'."
        )
    return _predictions(inputs)


def _predictions(inputs: TaskInputs) -> Tensor:
    """Returns what the model predicts at every node and, last, the probability of the class that is explained there.

    Nodes of a class mostly speak for it, whichever it is: what is learned of one class holds for the others.
    """
    prediction, label = inputs.node_prediction, inputs.target.label
    assert prediction is not None
    if label is None:
        return prediction
    if len(inputs) == 1 and prediction.is_cpu:
        columns, own = prediction.detach().numpy(), int(label)
        return torch.from_numpy(np.concatenate((columns, columns[:, own : own + 1]), axis=1, dtype=np.float64))
    return torch.cat([prediction, prediction.gather(1, label[inputs.instances.owner, None])], dim=1)


def tells_by_features(inputs: TaskInputs) -> bool:
    """Returns whether few features tell nodes apart that have classes of their own, beside what is predicted there."""
    instances = inputs.instances
    if instances.level == "graph" or instances.num_types > 1 or inputs.target.label is None:
        return False
    x = instances.rows() if instances.x.size(1) <= MAX_KINDS else instances.x[:0]
    return x.layout == torch.strided and bool((x != x[:1]).any())


def _features_by_distance(inputs: TaskInputs) -> Tensor:
    """Returns the features of neighbours of the explained node, and beside them those of nodes further away."""
    instances = inputs.instances
    columns = instances.x.size(1)
    if columns > MAX_KINDS:
        raise ConfigError(
            f"evidence='features' tells nodes apart by at most {MAX_KINDS} features, but there are {columns}. Use "
            "evidence='shared'."
        )
    x = instances.rows().double()
    near = torch.zeros(instances.num_nodes, 1, dtype=torch.bool, device=x.device)
    near[instances.neighbors_of(instances.roots)[1]] = True
    far = ~near
    far[instances.roots] = near[instances.roots] = False
    return torch.cat([x * near, x * far], dim=1)


def _num_features(instances: Instances, kind: EvidenceType) -> int:
    """Returns how many of the first columns of raw evidence around nodes are features; none of most kinds."""
    return 2 * instances.x.size(1) if kind == EvidenceType.features and instances.level != "graph" else 0


def has_own_class(inputs: TaskInputs) -> bool:
    """Returns whether the last column of shared evidence is the probability of the explained class."""
    classes = inputs.node_prediction is not None and inputs.target.label is not None
    return classes and inputs.instances.level != "graph" and inputs.instances.other_end is None


def on_ways(instances: Instances) -> Tensor:
    """Marks the nodes on ways by which both ends of a link are to be joined, shape ``[n]``."""
    assert instances.within is not None
    nodes = instances.hops_from(instances.center) + instances.hops_to_other_end + 1
    return (nodes <= instances.within[instances.owner]) & (nodes > 0)


def _link_evidence(inputs: TaskInputs) -> Tensor:
    lost = losses(inputs.predictor, inputs.instances, inputs.target, on_ways(inputs.instances))
    return torch.cat([_typed_evidence(inputs), lost.double()], dim=1)


def _typed_evidence(inputs: TaskInputs) -> Tensor:
    """Returns the type of each node as an indicator for each, what the model predicts where it does, and few features.

    The features that the flow network is told, the columns of ``x``, hold the type already.
    """
    x, types = inputs.instances.rows().double(), inputs.instances.num_types
    few = x if x.size(1) < MAX_KINDS else x[:, : types if types > 1 else 0]
    if inputs.node_prediction is None:
        return few
    return torch.cat([few, _predictions(inputs).double()], dim=1)
