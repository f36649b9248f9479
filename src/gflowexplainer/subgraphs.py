"""A batch of node sets, each inside one instance: what is generated, rewarded, counted and shown."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.instances import Instances
from gflowexplainer.noise import combine
from gflowexplainer.segments import find_sorted, pointers

TOO_SMALL = -30.0
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

    def __getitem__(self, index: Tensor) -> Subgraphs:
        return Subgraphs(self.instance[index], self.members[index])

    @staticmethod
    def cat(parts: list[Subgraphs]) -> Subgraphs:
        """Puts batches of equal width ``K`` behind each other."""
        return Subgraphs(torch.cat([p.instance for p in parts]), torch.cat([p.members for p in parts]))


def size_penalty(size: Tensor, can_grow: Tensor, min_nodes: int) -> Tensor:
    """Gives :data:`TOO_SMALL` where a subgraph has fewer than ``min_nodes`` nodes and could have more, else 0."""
    return torch.where((size < min_nodes) & can_grow, TOO_SMALL, 0.0)


def instance_keys(instances: Instances) -> Tensor:
    """Gives each instance a random 64-bit number, shape ``[I]``, which depends on its graph and node ids alone."""
    center = instances.center
    node = torch.where(center < 0, -1, instances.node_id[center.clamp(min=0)])
    return combine(instances.graph, node, 1)


def subgraph_keys(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Identifies each subgraph, whatever the order in which it was built, by a 64-bit hash of shape ``[B]``.

    The hash is the sum of the random keys of its nodes modulo 2^64, plus the key of its instance, so that a
    node can be added or taken away by one addition or subtraction.
    """
    keys = torch.where(subgraphs.filled, instances.key[subgraphs.members.clamp(min=0)], 0)
    return keys.sum(dim=1) + instance_keys(instances)[subgraphs.instance]


def kept_mask(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Marks the members as a flat mask over the nodes of each subgraph's instance, one instance behind the other."""
    first = pointers(instances.node_counts[subgraphs.instance])
    mask = torch.zeros(int(first[-1]), dtype=torch.bool, device=first.device)
    shift = (first[:-1] - instances.ptr[subgraphs.instance])[:, None]
    mask[(subgraphs.members + shift)[subgraphs.filled]] = True
    return mask


def neighbor_rows(instances: Instances) -> Tensor:
    """Names the node that each neighbour entry belongs to, shape ``[m]``."""
    return torch.repeat_interleave(torch.arange(instances.num_nodes, device=instances.device), instances.degree)


def neighbor_keys(instances: Instances) -> Tensor:
    """Numbers each neighbour entry by its two ends, ascending, shape ``[m]``, to look pairs of nodes up in."""
    return neighbor_rows(instances) * instances.num_nodes + instances.neighbor


def inner_neighbors(instances: Instances, subgraphs: Subgraphs) -> tuple[Tensor, Tensor]:
    """Finds which members are neighbours of one another.

    Returns:
        Whether slots ``i`` and ``j`` hold neighbours, shape ``[B, K, K]``, and, where they do, the position of
        that entry in ``instances.neighbor``.
    """
    members = subgraphs.members.clamp(min=0)
    pairs = members[:, :, None] * instances.num_nodes + members[:, None, :]
    position, found = find_sorted(neighbor_keys(instances), pairs)
    return found & subgraphs.filled[:, :, None] & subgraphs.filled[:, None, :], position


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
    adjacent, position = inner_neighbors(instances, subgraphs)
    edge = weight.new_zeros(instances.neighbor.numel())
    edge.index_add_(0, position[adjacent], weight[:, None, None].expand_as(adjacent)[adjacent])
    return node, edge


def edge_values(instances: Instances, neighbor_values: Tensor) -> Tensor:
    """Reads values given for neighbour entries ``[m]`` off at the model's edges ``[e]``; a self loop gets 0."""
    source, target = instances.edge_index
    if neighbor_values.numel() == 0:
        return neighbor_values.new_zeros(source.numel())
    position, found = find_sorted(neighbor_keys(instances), source * instances.num_nodes + target)
    return torch.where(found, neighbor_values[position], 0)
