"""A batch of node sets, each inside one instance: what is generated, rewarded, counted and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.segments import pointers
from gflowexplainer.ops.sorting import find_sorted

APART = 0x5851F42D4C957F2D
"""Multiplies positions to tell them apart in sums of 64-bit keys."""
TOO_SMALL = -300.0
"""What is added to the log-reward of a subgraph below the lower size bound: practically nothing is left of it."""


@dataclass(frozen=True)
class Subgraphs:
    """``B`` subgraphs of at most ``K`` nodes.

    Attributes:
        instance: The instance each subgraph lies in, shape ``[B]``.
        members: Flat node positions in order of insertion, shape ``[B, K]``; ``-1`` fills up.
    """

    instance: Tensor
    members: Tensor

    def __len__(self) -> int:
        return self.instance.numel()

    @property
    def filled(self) -> Tensor:
        """Which slots hold a node, shape ``[B, K]``."""
        return self.members >= 0

    @property
    def size(self) -> Tensor:
        """Number of nodes, shape ``[B]``."""
        return self.filled.sum(dim=1)

    def __getitem__(self, index: Tensor | slice) -> Subgraphs:
        return Subgraphs(self.instance[index], self.members[index])

    @classmethod
    def of_lists(
        cls, instance: Sequence[int], lists: Sequence[Sequence[int]], device: torch.device, width: int | None = None
    ) -> Subgraphs:
        """Makes subgraphs of lists of flat node positions; ``width`` is ``K``, by default the longest list's length."""
        width = max(map(len, lists)) if width is None else width
        rows = [[*nodes, *[-1] * (width - len(nodes))] for nodes in lists]
        return cls(torch.tensor(instance, device=device), torch.tensor(rows, dtype=torch.long, device=device))

    @staticmethod
    def cat(parts: list[Subgraphs]) -> Subgraphs:
        """Puts batches of equal width ``K`` behind each other."""
        return Subgraphs(torch.cat([p.instance for p in parts]), torch.cat([p.members for p in parts]))


def size_penalty(size: Tensor, can_grow: Tensor, min_nodes: int) -> Tensor:
    """Returns :data:`TOO_SMALL` where a subgraph has fewer than ``min_nodes`` nodes and could have more, else 0."""
    return torch.where((size < min_nodes) & can_grow, TOO_SMALL, 0.0)


def subgraph_keys(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Identifies each subgraph, whatever the order in which it was built, by a 64-bit hash of shape ``[B]``.

    The hash is the sum of the random keys of its nodes modulo 2^64, plus the key of its instance, so that a
    node can be added or taken away by one addition or subtraction.
    """
    keys = torch.where(subgraphs.filled, instances.key[subgraphs.members.clamp(min=0)], 0)
    return keys.sum(dim=1) + instances.own_key[subgraphs.instance]


def place_keys(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Identifies subgraphs as :func:`subgraph_keys` does, but apart where the same instance is there twice, ``[B]``."""
    return subgraph_keys(instances, subgraphs) + subgraphs.instance * APART


def kept_mask(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Marks the members as a flat mask over the nodes of each subgraph's instance, one instance behind the other."""
    first = pointers(instances.node_counts[subgraphs.instance])
    mask = torch.zeros(int(first[-1]), dtype=torch.bool, device=first.device)
    shift = (first[:-1] - instances.ptr[subgraphs.instance])[:, None]
    mask[(subgraphs.members + shift)[subgraphs.filled]] = True
    return mask


class InnerEdges(NamedTuple):
    """The ``Q`` pairs of members that are neighbours, each pair once.

    Attributes:
        subgraph: Subgraph of each pair, shape ``[Q]``.
        one, other: Slots of its two nodes, the earlier first, both ``[Q]``.
        entry: Position in ``instances.neighbor`` of the second as neighbour of the first, shape ``[Q]``.
    """

    subgraph: Tensor
    one: Tensor
    other: Tensor
    entry: Tensor


def inner_edges(instances: Instances, subgraphs: Subgraphs) -> InnerEdges:
    """Finds which members are neighbours of one another."""
    used = int(subgraphs.size.max()) if len(subgraphs) else 0
    members = subgraphs.members[:, :used]
    one, other = torch.triu_indices(used, used, 1, device=members.device)
    # Slots are filled from the front, so the later one tells whether there are two.
    subgraph, pair = torch.nonzero(members[:, other] >= 0, as_tuple=True)
    one, other = one[pair], other[pair]
    entry, found = find_sorted(
        instances.neighbor_key, members[subgraph, one] * instances.num_nodes + members[subgraph, other]
    )
    there = torch.nonzero(found).flatten()
    return InnerEdges(subgraph[there], one[there], other[there], entry[there])


def inner_neighbors(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Returns whether slots ``i`` and ``j`` hold neighbours, shape ``[B, K, K]``."""
    batch, width = subgraphs.members.shape
    inner = inner_edges(instances, subgraphs)
    adjacent = torch.zeros(batch, width, width, dtype=torch.bool, device=subgraphs.members.device)
    adjacent[inner.subgraph, inner.one, inner.other] = True
    adjacent[inner.subgraph, inner.other, inner.one] = True
    return adjacent


def marginals(instances: Instances, subgraphs: Subgraphs, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Adds up the weight of the subgraphs that hold each node and each edge.

    Args:
        instances: The instances.
        subgraphs: ``B`` subgraphs of them.
        weight: Weight of each, shape ``[B]``; if it sums to 1 within an instance, probabilities come out.

    Returns:
        Weight of each node ``[n]`` and of each neighbour entry ``[m]`` (both ends inside).
    """
    node = weight.new_zeros(instances.num_nodes)
    filled = subgraphs.filled
    node.index_add_(0, subgraphs.members[filled], weight[:, None].expand_as(filled)[filled])
    inner = inner_edges(instances, subgraphs)
    one, other = (subgraphs.members[inner.subgraph, slot] for slot in (inner.one, inner.other))
    backward, _ = find_sorted(instances.neighbor_key, other * instances.num_nodes + one)
    edge = weight.new_zeros(instances.neighbor.numel())
    for entry in (inner.entry, backward):
        edge.index_add_(0, entry, weight[inner.subgraph])
    return node, edge


def edge_values(instances: Instances, neighbor_values: Tensor) -> Tensor:
    """Reads values given for neighbour entries ``[m]`` off at the model's edges ``[e]``; a self loop gets 0."""
    if neighbor_values.numel() == 0:
        return neighbor_values.new_zeros(instances.edge_index.size(1))
    source, target = instances.edge_index
    position, found = find_sorted(instances.neighbor_key, source * instances.num_nodes + target)
    return torch.where(found, neighbor_values[position], 0)
