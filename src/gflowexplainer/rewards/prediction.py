"""Rewards that feed the subgraph alone to the model: the paper's, and RG-Explainer's regularised one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_neighbors
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import TINY
from gflowexplainer.ops.segments import pointers, ranges, segment_sum
from gflowexplainer.rewards.base import Reward


class PredictionReward(Reward):
    r"""The paper's reward (equation 10): the exponential of minus a cross-entropy.

    The equation's words and its use disagree on which of the two distributions is the target, the model's
    answer :math:`p` on the whole instance or its answer :math:`q` on the subgraph alone. Here:

    * ``expectation="whole"`` (default): :math:`\sum_c p_c \log q_c`. The whole prediction is the target, as in
      the mutual-information objective that the equation is derived from, and in PGExplainer.
    * ``expectation="subgraph"``: :math:`\sum_c q_c \log p_c`, the letter of the sentence below the equation.
    * ``expectation="label"``: :math:`\log q_y` with the class ``y`` to be held: the plain class probability.

    For regression all three are the Gaussian of :class:`~gflowexplainer.model.target.Target`.
    """

    def __init__(
        self, predictor: Predictor, instances: Instances, *, expectation: str = "whole", **settings: Any
    ) -> None:
        super().__init__(predictor, instances, **settings)
        self.expectation = one_of("expectation", expectation, ("whole", "subgraph", "label"))

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        alone = self.predict(subgraphs)
        if self.target.label is None or self.expectation == "label":
            return self.target.log_preservation(alone, subgraphs.instance)
        whole = self.target.prediction[subgraphs.instance]
        weight, answer = (whole, alone) if self.expectation == "whole" else (alone, whole)
        return (weight * answer.clamp(min=TINY).log()).sum(dim=1)


class RegularizedReward(PredictionReward):
    r"""RG-Explainer's reward: the prediction loss and three regularisers.

    .. math:: \log R(s) = -\mathcal{L}(s) - \lambda_1 |E_s| - \lambda_2\, d(s) - \lambda_3\, r(s)

    with :math:`|E_s|` the directed edges inside, :math:`d` the mean distance between the embeddings of the
    members and of the first node, and :math:`r` the radius: the most steps from the first node to a member.

    Args:
        embedding: The explained model's node embeddings, shape ``[n, H]``.
        edge_weight, distance_weight, radius_weight: The three coefficients; the defaults are those of the
            public code of RG-Explainer for node tasks.
    """

    def __init__(
        self,
        predictor: Predictor,
        instances: Instances,
        *,
        embedding: Tensor,
        edge_weight: float = 0.01,
        distance_weight: float = 1.0,
        radius_weight: float = 0.1,
        expectation: str = "label",
        **settings: Any,
    ) -> None:
        super().__init__(predictor, instances, expectation=expectation, **settings)
        if embedding.size(0) != instances.num_nodes:
            raise ConfigError(
                f"'embedding' must have one row for each of the {instances.num_nodes} nodes of the instances "
                f"(got {embedding.size(0)})."
            )
        self.embedding = embedding
        self.edge_weight, self.distance_weight, self.radius_weight = (
            edge_weight,
            distance_weight,
            radius_weight,
        )

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        adjacent = inner_neighbors(self.instances, subgraphs)
        penalty = self.edge_weight * self._directed_edges(subgraphs)
        penalty += self.distance_weight * self._embedding_distance(subgraphs)
        penalty += self.radius_weight * radius(adjacent)
        return super()._log_score(subgraphs) - penalty

    def _directed_edges(self, subgraphs: Subgraphs) -> Tensor:
        def count(chunk: slice) -> Tensor:
            part = subgraphs[chunk]
            return edges_inside(self.instances, part, self.kept_mask(part))

        return self.predictor.in_chunks(self.instances, subgraphs.instance, count)

    def _embedding_distance(self, subgraphs: Subgraphs) -> Tensor:
        members, filled = subgraphs.members.clamp(min=0), subgraphs.filled
        gap = (self.embedding[members] - self.embedding[members[:, :1]]).norm(dim=-1)
        return (gap * filled).sum(dim=1) / filled.sum(dim=1)


def radius(adjacent: Tensor) -> Tensor:
    """Counts the most steps from the first slot to a reachable one in adjacency ``[B, K, K]``, shape ``[B]``."""
    batch, width, _ = adjacent.shape
    reached = torch.zeros(batch, width, dtype=torch.bool, device=adjacent.device)
    reached[:, :1] = True
    steps = torch.zeros(batch, device=adjacent.device)
    for _ in range(width - 1):
        further = reached | (adjacent & reached[:, :, None]).any(dim=1)
        steps += (further != reached).any(dim=1)
        reached = further
    return steps


def edges_inside(instances: Instances, subgraphs: Subgraphs, kept: Tensor) -> Tensor:
    """Counts the directed edges between members, shape ``[B]``; ``kept`` is :meth:`Reward.kept_mask` of them."""
    first = pointers(instances.node_counts[subgraphs.instance])[:-1] - instances.ptr[subgraphs.instance]
    owner, edge = ranges(instances.edge_ptr[subgraphs.instance], instances.edge_counts[subgraphs.instance])
    source, target = instances.edge_index[:, edge] + first[owner]
    return segment_sum((kept[source] & kept[target]).float(), owner, len(subgraphs))
