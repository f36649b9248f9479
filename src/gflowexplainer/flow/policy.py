"""The policy: how much flow leaves a state along each edge, and how much arrives along each.

A policy sees a state only through sums over its members. A parent, which lacks one member, is therefore one
subtraction away: all inflows of a state cost one row of the network each, and no graph is propagated again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import size_penalty
from gflowexplainer.ops.segments import segment_logsumexp


class Flows(NamedTuple):
    """Log-flows of ``B`` states with ``F`` frontier entries.

    Attributes:
        action: Of adding each frontier node, shape ``[F]``.
        stop: Of stopping, shape ``[B]``.
        inflow: Of everything that enters, shape ``[B]``, where it is asked for.
    """

    action: Tensor
    stop: Tensor
    inflow: Tensor | None = None


class Policy(nn.Module, ABC):
    """Log-flows of a state's outgoing and incoming edges.

    Args:
        in_features: Width ``D`` of the node features.
        min_nodes: Lower size bound. The penalty of smaller states is added to their stop flow, as it is to their
            log-reward, so that the network need not learn that constant.
    """

    prepares_all = False
    """Whether prepared flows are the same operations on the same shapes every time, without the CPU looking at any."""

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

    @abstractmethod
    def encode(self, instances: Instances, features: Tensor, only: Tensor | None = None) -> Any:
        """Computes once what depends on the instances alone, from node features ``[n, D]``.

        Args:
            instances: The instances.
            features: Features of their nodes, shape ``[n, D]``.
            only: Instances ``[B]`` whose states will be asked about; a policy may leave the others out.
        """

    def encode_visited(self, instances: Instances, features: Tensor, states: States) -> Any:
        """Computes what :meth:`encode` does for the nodes that states hold or may gain; others may be left out."""
        return self.encode(instances, features, states.instance)

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

    def prepare(
        self, instances: Instances, features: Tensor, states: States, parents: Tensor | None = None
    ) -> Callable[[], Flows]:
        """Gets ready to compute the log-flows of the same states again and again, under weights that change.

        Args:
            instances: The instances.
            features: Features of their nodes, shape ``[n, D]``.
            states: ``B`` states.
            parents: The members that give a parent, shape ``[B, K]``, if what enters is wanted too.
        """

        def flows() -> Flows:
            encoding = self.encode_visited(instances, features, states)
            action, stop = self.log_flows(encoding, states)
            if parents is None:
                return Flows(action, stop)
            return Flows(action, stop, torch.logsumexp(self.log_inflows(encoding, states, parents), dim=1))

        return flows

    def _bounded(self, stop: Tensor, states: States) -> Tensor:
        """Puts the size bound on stop flows ``[B]``; a state that is no explanation, as an empty one, never stops."""
        stop = torch.where(states.complete, stop, -torch.inf)
        return stop + size_penalty(states.size, states.can_grow, self.min_nodes)


def log_outflow(states: States, action: Tensor, stop: Tensor) -> Tensor:
    """Sums all that leaves each state, from the log-flows of actions ``[F]`` and of stopping ``[B]``, shape ``[B]``."""
    return torch.logaddexp(stop, segment_logsumexp(action, states.frontier_state, len(states)))
