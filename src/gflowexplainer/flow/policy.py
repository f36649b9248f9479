"""The policy: how much flow leaves a state along each edge, and how much arrives along each.

A policy sees a state only through sums over its members. A parent, which lacks one member, is therefore one
subtraction away: all inflows of a state cost one row of the network each, and no graph is propagated again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import size_penalty
from gflowexplainer.ops.segments import segment_logsumexp


class Policy(nn.Module, ABC):
    """Log-flows of a state's outgoing and incoming edges.

    Args:
        in_features: Width ``D`` of the node features.
        min_nodes: Lower size bound. The penalty of smaller states is added to their stop flow, as it is to their
            log-reward, so that the network need not learn that constant.
    """

    def __init__(self, in_features: int, min_nodes: int = 1) -> None:
        super().__init__()
        self.min_nodes = min_nodes
        self.register_buffer("feature_mean", torch.zeros(in_features))
        self.register_buffer("feature_scale", torch.ones(in_features))
        self.feature_mean: Tensor
        self.feature_scale: Tensor

    def fit_scale(self, features: Tensor) -> None:
        """Remembers mean and spread of features ``[n, D]``; from then on inputs are standardised by them."""
        self.feature_mean = features.mean(dim=0)
        spread = features.std(dim=0, correction=0)
        self.feature_scale = torch.where(spread > 1e-6, spread, 1.0)

    def standardize(self, features: Tensor) -> Tensor:
        """Brings features ``[n, D]`` to the scale that the policy was made for."""
        return (features - self.feature_mean) / self.feature_scale

    def encode(self, instances: Instances, features: Tensor) -> Any:
        """Computes once what depends on the instances alone, from the features of their nodes ``[n, D]``."""
        return self.standardize(features)

    @abstractmethod
    def log_flows(self, encoding: Any, states: States) -> tuple[Tensor, Tensor]:
        """Returns the log-flow of adding each frontier node ``[F]`` and of stopping ``[B]``."""

    @abstractmethod
    def log_inflows(self, encoding: Any, states: States, parents: Tensor) -> Tensor:
        r"""Returns the log-flow :math:`\log F(s \setminus \{u\} \to s)` that enters from each parent.

        Args:
            encoding: From :meth:`encode`.
            states: ``B`` states.
            parents: The members ``u`` that give a parent, shape ``[B, K]``.

        Returns:
            Log-flows, shape ``[B, K]``; ``-inf`` where there is no parent.
        """

    def _bounded(self, stop: Tensor, states: States) -> Tensor:
        """Puts the size bound on stop flows ``[B]``; a state that is no explanation, as an empty one, never stops."""
        stop = torch.where(states.complete, stop, -torch.inf)
        return stop + size_penalty(states.size, states.can_grow, self.min_nodes)


def log_outflow(states: States, action: Tensor, stop: Tensor) -> Tensor:
    """Sums all that leaves each state, from the log-flows of actions ``[F]`` and of stopping ``[B]``, shape ``[B]``."""
    return torch.logaddexp(stop, segment_logsumexp(action, states.frontier_state, len(states)))
