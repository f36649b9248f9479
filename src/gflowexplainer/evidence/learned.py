"""What a node of some kind usually brings: learned once from many instances, and the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.evidence.kinds import Kinds, descriptions
from gflowexplainer.evidence.losses import node_losses
from gflowexplainer.evidence.measuring import Measured, affordable, measure, random_pieces
from gflowexplainer.evidence.regression import Regression, added_up, reproducible
from gflowexplainer.flow.particles import Unrewarded, sample_particles
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_edges
from gflowexplainer.model.target import Target
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import segment_logsumexp, segment_sum
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.steering import ADDED_UP, CLEAR, EXPLAINED, LEAST_SPREAD, PIECE, SPARSE

_USUAL = 32
"""Random subgraphs of each size that show how much evidence differs within an instance."""
_NO_SPREAD, _UNSURE = 1e-9, 1e-2
_WORK = 16 << 30
"""Bytes of model input that a fit may take; beyond it, large instances are described by what small ones taught."""


@dataclass(frozen=True)
class Evidence:
    """One number for every node and neighbour entry of ``I`` instances, and how much they differ.

    Attributes:
        node: Of each node, shape ``[n]``.
        edge: Of each neighbour entry, the same from both ends, shape ``[m]``.
        counted: Whether a node counts in the size of a subgraph: what is in all of them tells none apart, ``[n]``.
        spreads: Spread per node of random subgraphs of each instance: of each part of this evidence (what kinds say, as
            often as nodes are told apart, and single losses), and last of all of it, shape ``[S + 2, I]``.
        lost: What the model loses without each node, in its own units, shape ``[n]``.
    """

    node: Tensor
    edge: Tensor
    counted: Tensor
    spreads: Tensor
    lost: Tensor


@dataclass(frozen=True)
class Shared:
    """What nodes of a kind, and the edges between nodes, usually bring, where nodes are told apart in one way.

    Attributes:
        kinds: How nodes are told apart.
        weight: What each column of a description brings, a row for each class and, last, for all, ``[C + 1, P]``.
        explained: Share of the reproducible variance that is explained where it was not fitted.
    """

    kinds: Kinds
    weight: Tensor
    explained: float

    def said(self, inputs: TaskInputs, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Returns what kinds say of every node ``[n]`` and neighbour entry ``[m]``.

        What a node brings whatever its kind is the same for all and is left out: what counts is evidence per node.

        Args:
            inputs: The instances, with what the model predicts for them.
            seen: What nodes are told apart by, shape ``[n, R]``.
        """
        instances, columns = inputs.instances, self.kinds.columns(seen)
        width = columns.size(1)
        weight = self._weights_of(inputs.target, width + 2 + num_relations(instances))
        node = (columns * weight[instances.owner, :width]).sum(dim=1)
        own = weight[instances.owner[instances.neighbor_row], width + 1 :]
        return node, (_edges(instances) * own).sum(dim=1)

    def _weights_of(self, target: Target, width: int) -> Tensor:
        """Returns the weights of each instance, shape ``[I, P]``: those of the class that is explained."""
        if self.weight.size(1) != width:
            raise CheckpointError(
                f"There are weights for descriptions of {self.weight.size(1)} numbers, not {width}. They belong to "
                "another model or another version; fit again."
            )
        if target.label is None:
            return self.weight[-1:].expand(target.prediction.size(0), -1)
        if int(target.label.max()) >= self.weight.size(0) - 1:
            raise CheckpointError(
                f"What was learned knows {self.weight.size(0) - 1} classes, but class {int(target.label.max())} is "
                "explained. It belongs to another model; fit again."
            )
        return self.weight[target.label]


@dataclass(frozen=True)
class Learned:
    """What was learned from many instances: what nodes of a kind usually bring, and how far each evidence is to count.

    Attributes:
        shared: What kinds bring, once for each way to tell nodes apart (:func:`descriptions`).
        removal: What it means that a node is gone: ``"induced"`` or ``"isolate"``.
        added_up: Share of what pieces bring near the whole that single losses add up to.
        usual: Usual spread of what each of ``shared`` says, of single losses, and of all together, shape ``[S + 2]``.
    """

    shared: tuple[Shared, ...]
    removal: str
    added_up: float
    usual: Tensor

    @property
    def explained(self) -> float:
        """Share of the reproducible variance that kinds explain where it was not fitted, in the better way."""
        return max(shared.explained for shared in self.shared)

    def evidence(self, inputs: TaskInputs, lost: Tensor | None = None) -> Evidence:
        """Returns the evidence of some instances: what kinds usually bring plus what is lost without single nodes.

        Each part counts in units of its own spread, per node of a random subgraph, by how well it predicts the model.

        Args:
            inputs: The instances, with what the model predicts for them.
            lost: What is lost without each node, shape ``[n]``, where it is known already.
        """
        instances, seen = inputs.instances, descriptions(inputs)
        if len(seen) != len(self.shared):
            raise ConfigError(
                f"Nodes were told apart in {len(self.shared)} ways, but these are in {len(seen)}. They belong to "
                "another model or other features; fit again."
            )
        lost = node_losses(inputs, self.removal) if lost is None else lost
        said = [shared.said(inputs, numbers) for shared, numbers in zip(self.shared, seen, strict=True)]
        parts = [*said, (lost, torch.zeros_like(said[0][1]))]
        counts = [min(max(shared.explained, _UNSURE), 1.0) ** EXPLAINED for shared in self.shared]
        counts.append(self.added_up**ADDED_UP)
        counted = torch.ones(instances.num_nodes, dtype=torch.double, device=lost.device)
        counted[instances.roots] = 0.0
        usual, spreads = _UsualSubgraphs(instances, counted), list[Tensor]()
        node, edge = torch.zeros_like(counted), torch.zeros_like(said[0][1])
        for (of_nodes, of_edges), count, typical in zip(parts, counts, self.usual[:-1], strict=True):
            spreads.append(usual.spread(of_nodes * counted, of_edges, typical))
            unit = count / spreads[-1][instances.owner]
            node, edge = node + unit * of_nodes * counted, edge + unit[instances.neighbor_row] * of_edges
        if inputs.target.label is not None:  # contributions to a value have two signs, and are left as they are
            node = _levelled(node, instances, counted)
        spreads.append(usual.spread(node, edge, self.usual[-1]))
        return Evidence(node, edge, counted, torch.stack(spreads), lost)

    def tensors(self) -> dict[str, Tensor]:
        """Returns everything as tensors, for a section of a file."""
        explained = [shared.explained for shared in self.shared]
        numbers = torch.tensor([self.removal == Removal.isolate, self.added_up, *explained], dtype=torch.double)
        found = {"usual": self.usual, "numbers": numbers}
        for place, shared in enumerate(self.shared):
            tensors = {**shared.kinds.tensors(), "weight": shared.weight}
            found |= {f"{name}_{place}": tensor for name, tensor in tensors.items()}
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Learned:
        """Reads what :meth:`tensors` gave."""
        try:
            isolate, added_up, *explained = tensors["numbers"].tolist()
            removal = Removal.isolate if isolate else Removal.induced
            shared = []
            for place, share in enumerate(explained):
                own = {name: tensors[f"{name}_{place}"] for name in ("basis", "spread", "weight")}
                if own["weight"].dim() != 2:
                    raise ValueError(f"weights {tuple(own['weight'].shape)}")
                shared.append(Shared(Kinds.from_tensors(own), own["weight"], share))
            usual = tensors["usual"]
            if not shared or usual.shape != (len(shared) + 2,):
                raise ValueError(f"spreads {tuple(usual.shape)}")
            return cls(tuple(shared), removal.value, added_up, usual)
        except (KeyError, ValueError, IndexError, RuntimeError, TypeError) as error:
            raise CheckpointError(f"The file holds no evidence, or one of another version ({error}).") from error

    def to(self, device: torch.device | str) -> Learned:
        """Moves everything to ``device``."""
        moved = (replace(one, kinds=one.kinds.to(device), weight=one.weight.to(device)) for one in self.shared)
        return replace(self, shared=tuple(moved), usual=self.usual.to(device))


def learn(inputs: TaskInputs, seed: int, removal: str = Removal.induced, *, work: int = _WORK) -> Learned:
    """Learns what kinds of nodes usually bring from random pieces of the instances, as many as the work allows.

    Args:
        inputs: The instances, with what the model predicts for them.
        seed: Names everything that is random.
        removal: What it means that a node is gone: ``"induced"`` or ``"isolate"``.
        work: Bytes of model input for which the model is evaluated, about.
    """
    inputs = affordable(inputs, work)
    instances, target, removal = inputs.instances, inputs.target, Removal(removal).value
    pieces = random_pieces(inputs, seed, work)
    classes = 0 if target.label is None else target.prediction.size(1)
    measured = measure(inputs, pieces, removal, seed)
    lost, (brought, sure) = node_losses(inputs, removal), measured.together()
    shared = []
    for seen in descriptions(inputs):
        kinds = Kinds.of(seen)
        description = describe(instances, kinds.columns(seen), pieces)
        regression = Regression(description, pieces.instance, target.label, classes)
        shared.append(Shared(kinds, regression.weights(brought), regression.held_out(brought) / max(sure, _UNSURE)))
    nothing = torch.zeros(len(shared) + 2, dtype=torch.double, device=instances.device)
    learned = Learned(tuple(shared), removal, _added_up(instances, pieces, measured, lost), nothing)
    return replace(learned, usual=learned.evidence(inputs, lost).spreads.median(dim=1).values)


def _added_up(instances: Instances, pieces: Subgraphs, measured: Measured, lost: Tensor) -> float:
    """Returns how far single losses add up to what pieces bring near the whole, as a share of its variance."""
    single = total_evidence(instances, lost, None, pieces)
    sure = reproducible(measured.near, pieces.instance)
    return min(added_up(single, measured.near.mean(dim=0), pieces.instance) / max(sure, _UNSURE), 1.0)


def _levelled(evidence: Tensor, instances: Instances, counted: Tensor) -> Tensor:
    """Counts from the usual node of each instance, and lets those that speak clearly count alike, shape ``[n]``."""
    owner, number = instances.owner, len(instances)
    usual = segment_sum(evidence * counted, owner, number) / segment_sum(counted, owner, number).clamp(min=1)
    evidence = (evidence - usual[owner]) * counted
    loudest = evidence.new_zeros(number).scatter_reduce(0, owner, evidence, "amax")
    return torch.minimum(evidence, CLEAR * loudest[owner])


class _UsualSubgraphs:
    """Random subgraphs of small size, which show how much evidence differs within each instance.

    Args:
        instances: The instances.
        counted: Whether a node counts in the size, shape ``[n]``.
    """

    def __init__(self, instances: Instances, counted: Tensor) -> None:
        self.instances = instances
        reward = Unrewarded(counted, torch.zeros(instances.neighbor.numel(), dtype=torch.double, device=counted.device))
        found = sample_particles(instances, reward, max_nodes=PIECE, width=_USUAL, seed=0, min_nodes=2)
        self.subgraphs, instance = found.subgraphs, found.subgraphs.instance
        number = len(instances)
        self.share = (found.log_weight - segment_logsumexp(found.log_weight, instance, number)[instance]).exp()
        members = self.subgraphs.members
        self.size = torch.where(members >= 0, counted[members.clamp(min=0)], 0.0).sum(dim=1).clamp(min=1)

    def spread(self, node: Tensor, edge: Tensor | None, usual: Tensor | float = 0.0) -> Tensor:
        """Returns the spread of evidence per node in each instance, at least a share of the ``usual`` one, ``[I]``."""
        instance, number = self.subgraphs.instance, len(self.instances)
        value = total_evidence(self.instances, node, edge, self.subgraphs) / self.size
        mean = segment_sum(self.share * value, instance, number)
        spread = segment_sum(self.share * (value - mean[instance]).square(), instance, number).sqrt()
        floor = torch.as_tensor(usual, dtype=spread.dtype, device=spread.device) * LEAST_SPREAD
        return torch.where(spread > _NO_SPREAD, spread, 1.0).maximum(floor)


def total_evidence(instances: Instances, node: Tensor, edge: Tensor | None, subgraphs: Subgraphs) -> Tensor:
    """Adds up the evidence of nodes ``[n]`` and neighbour entries ``[m]`` inside each of ``B`` subgraphs, ``[B]``."""
    members = subgraphs.members
    total = torch.where(members >= 0, node[members.clamp(min=0)], 0.0).sum(dim=1)
    if edge is None:
        return total
    inner = inner_edges(instances, subgraphs)
    return total.index_add(0, inner.subgraph, edge[inner.entry])


def num_relations(instances: Instances) -> int:
    """Returns the number of relations that edges are counted by: 0 where there are fewer than two."""
    return instances.num_relations if instances.num_relations > 1 else 0


def _relations(instances: Instances) -> Tensor:
    """Returns which relations join the ends of each neighbour entry, shape ``[m, R]``."""
    found = torch.zeros(
        instances.neighbor.numel(), num_relations(instances), dtype=torch.double, device=instances.device
    )
    types = instances.edge_arguments.get("edge_type")
    if found.size(1) and types is not None:
        source, target = instances.edge_index
        for one, other in ((source, target), (target, source)):
            entry, there = find_sorted(instances.neighbor_key, one * instances.num_nodes + other)
            found[entry[there], types[there]] = 1
    return found


def _edges(instances: Instances) -> Tensor:
    """Returns what each neighbour entry counts for in all, and as each relation, shape ``[m, 1 + R]``.

    What is dense would hold together whatever it is: no node brings more edges than :data:`SPARSE`.
    """
    degree = torch.minimum(instances.degree[instances.neighbor_row], instances.degree[instances.neighbor])
    counts = torch.cat([torch.ones_like(degree)[:, None].double(), _relations(instances)], dim=1)
    return counts * (SPARSE / degree.clamp(min=SPARSE))[:, None]


def describe(instances: Instances, columns: Tensor, subgraphs: Subgraphs) -> Tensor:
    """Counts the nodes of each kind ``[n, D]``, nodes, edges, and edges of each relation in subgraphs, ``[B, P]``."""
    row, slot = torch.nonzero(subgraphs.filled, as_tuple=True)
    nodes = columns.new_zeros(len(subgraphs), columns.size(1)).index_add_(0, row, columns[subgraphs.members[row, slot]])
    inner = inner_edges(instances, subgraphs)
    kinds = _edges(instances)[inner.entry]
    edges = columns.new_zeros(len(subgraphs), kinds.size(1)).index_add_(0, inner.subgraph, kinds)
    return torch.cat([nodes, subgraphs.size[:, None].to(nodes), edges], dim=1)
