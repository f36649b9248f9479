"""The locator: where in a graph an explanation should start (equation 11, Algorithm 2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.segments import segment_argmax, segment_logsumexp, segment_sum


class Locator(nn.Module):
    r"""A three-layer MLP (64-8-1) on the embeddings of graph and node, :math:`\omega = MLP([z_g, z_v])`.

    Args:
        in_features: Width ``H`` of the node embeddings; a graph is represented by the mean of its nodes.
    """

    def __init__(self, in_features: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(2 * in_features, 64), nn.ReLU(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1)
        )

    def forward(self, instances: Instances, embedding: Tensor) -> Tensor:
        """Rates every node as a start by its log-probability within its graph, shape ``[n]``."""
        owner = instances.owner
        mean = segment_sum(embedding, owner, len(instances)) / instances.node_counts[:, None]
        rating = self.mlp(torch.cat([mean.index_select(0, owner), embedding], dim=1))[:, 0]
        return rating - segment_logsumexp(rating, owner, len(instances))[owner]

    @torch.no_grad()
    def start(self, instances: Instances, embedding: Tensor) -> Tensor:
        """Picks the best start node of each instance as a flat position, shape ``[I]``."""
        return segment_argmax(self(instances, embedding), instances.owner, len(instances))


def locator_loss(log_rating: Tensor, score: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    r"""Kullback-Leibler divergence from the locator to the softmax of what grew from each node.

    Args:
        log_rating: The locator's log-probabilities of some nodes ``[N]``.
        score: :math:`-\mathcal{L}` of a subgraph grown from each of these nodes, shape ``[N]``.
        graph: Graph of each node, shape ``[N]``.
        num_graphs: Number of graphs.
    """
    wanted = score - segment_logsumexp(score, graph, num_graphs)[graph]
    divergence = wanted.exp() * (wanted - log_rating)
    return divergence.sum() / max(int(torch.unique(graph).numel()), 1)
