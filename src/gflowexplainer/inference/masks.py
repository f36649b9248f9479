"""How probably each node and each edge belongs to an explanation: the masks of many explanations at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.ops.sparse_rows import MatrixEntries
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.sampler import FlowSampler

ELSEWHERE = 0.1
"""What the evidence of single nodes of a graph counts, where the distribution counts 1."""


@dataclass(frozen=True)
class Masks:
    """Probabilities of the ``n`` nodes and ``e`` edges of the instances of a sampler.

    Where what single nodes do tells how the model decides, a node belongs to the explanation also by itself: as
    probably as what it adds is to what the strongest adds. Its probability is then the mean of the two, weighed by how
    far single nodes are to be trusted (:func:`~gflowexplainer.rewards.mask_weight.mask_weight`). In a graph several
    places may speak; those that samples seldom come to count a little by their evidence. And where the
    distribution follows them too, a node that speaks against the class does not belong, though a way may lead over it.

    Attributes:
        sampler: What was sampled from.
        estimates: Probabilities of the distribution alone.
    """

    sampler: FlowSampler
    estimates: Estimates

    @cached_property
    def node(self) -> Tensor:
        """Probability of each node, shape ``[n]``."""
        found, reward = self.estimates.node, self.sampler.reward
        against = reward.speaks_against() if isinstance(reward, ConsensusReward) else None
        if against is not None:
            found = torch.where(against, 0.0, found)
        return _probability(_mean(found, self._shares))

    @cached_property
    def edge(self) -> Tensor:
        """Probability that both ends of each edge are inside, of a self loop that its node is, shape ``[e]``."""
        instances = self.sampler.instances
        edge = edge_values(instances, self.estimates.neighbor)
        if self._shares or instances.has_loops:
            source, target = instances.edge_index
            shares = [(weight, torch.minimum(share[source], share[target])) for weight, share in self._shares]
            edge = _mean(edge, shares)
            edge = torch.where(source == target, self.node[source].to(edge), edge)
        return _probability(edge)

    @cached_property
    def _shares(self) -> list[tuple[float, Tensor]]:
        """What nodes do by themselves, in [0, 1], ``[n]``, and what that counts where the distribution counts 1."""
        reward = self.sampler.reward
        if not isinstance(reward, ConsensusReward):
            return []
        found = [(reward.consensus.beside, reward.own_share()), (ELSEWHERE, reward.said_share())]
        return [(weight, share) for weight, share in found if share is not None]

    def entries(self, kind: str) -> MatrixEntries:
        """Returns ``"node"`` or ``"edge"`` masks."""
        instances, graphs = self.sampler.instances, self.sampler.inputs.graphs
        # Of the nodes of one graph, all have the same.
        shown = [graph.shown or graph for graph in {id(graph): graph for graph in graphs}.values()]
        if kind == "node":
            row, place, value = instances.owner, instances.node_id, self.node
            outer, size = [graph.nodes for graph in graphs], max(graph.x.size(0) for graph in shown)
        else:
            row, place, value = instances.edge_owner, instances.edge_id, self.edge
            outer, size = [graph.edges for graph in graphs], max(graph.edge_index.size(1) for graph in shown)
        # Nodes and edges of an instance stand in the user's order.
        in_order = all(ids is None for ids in outer)
        if not in_order:
            counts = instances.node_counts if kind == "node" else instances.edge_counts
            parts = place.split(counts.tolist())
            place = torch.cat([part if ids is None else ids[part] for part, ids in zip(parts, outer, strict=True)])
        row, column, value = (tensor.to(shown[0].x.device) for tensor in (row, place, value))
        return MatrixEntries(row, column, value, size, in_order)


def _probability(value: Tensor) -> Tensor:
    """Brings what may be off by rounding into [0, 1]."""
    return value.clamp(0, 1).float()


def _mean(value: Tensor, shares: Sequence[tuple[float, Tensor]]) -> Tensor:
    """Takes the weighted mean of probabilities of the distribution, which count 1, and of shares."""
    if not shares:
        return value
    total = value
    for weight, share in shares:
        total = total + weight * share.to(value)
    return total / (1 + sum(weight for weight, _ in shares))
