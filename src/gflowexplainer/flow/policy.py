"""The policy: how much flow leaves a state along each edge, and how much arrives along each.

A policy sees a state only through sums over its members. A parent, which lacks one member, is therefore one
subtraction away: all inflows of a state cost one row of the network each, and no graph is propagated again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import size_penalty
from gflowexplainer.ops.segments import segment_logsumexp

_ENTRIES_AT_ONCE = 1 << 18
"""Frontier nodes that a policy looks at together: some hundred MiB."""


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

    def _bounded(self, stop: Tensor, states: States) -> Tensor:
        """Puts the size bound on stop flows ``[B]``; a state that is no explanation, as an empty one, never stops."""
        stop = torch.where(states.complete, stop, -torch.inf)
        return stop + size_penalty(states.size, states.can_grow, self.min_nodes)


def log_outflow(states: States, action: Tensor, stop: Tensor) -> Tensor:
    """Sums all that leaves each state, from the log-flows of actions ``[F]`` and of stopping ``[B]``, shape ``[B]``."""
    return torch.logaddexp(stop, segment_logsumexp(action, states.frontier_state, len(states)))


@dataclass(frozen=True)
class AdditiveEncoding:
    """What the additive policy knows of nodes.

    Attributes:
        candidate: Of a node that may be added, shape ``[N, H]``.
        member: Of a member, for actions and for stopping, shape ``[N, 2 H]``.
        root: Of the start node, for actions and for stopping, shape ``[N, 2 H]``.
        degree: Of all nodes of the instances, shape ``[n]``.
        row: Where each node of the instances stands among the ``N``, shape ``[n]``; they are the same if ``None``.
    """

    candidate: Tensor
    member: Tensor
    root: Tensor
    degree: Tensor
    row: Tensor | None = None

    def place(self, node: Tensor) -> Tensor:
        """Finds nodes, given as flat positions, among those that are known."""
        return node if self.row is None else self.row[node]


class AdditivePolicy(Policy):
    r"""The default policy: a two-layer network over sums of what the members say.

    .. math::
        \log F(s \to s \cup \{u\}) &= w^\top \sigma\big(W \sigma(c_u + \textstyle\sum_{v \in s} m_v
            + r_{v_0} + k_{|s|} + \ell(u, s))\big) \\
        \log F(s \to \mathit{stop}) &= w'^\top \sigma(W' \sigma(\textstyle\sum_{v \in s} m'_v + \dots))

    where ``c``, ``m`` and ``r`` are linear in the features of a node, ``k`` is learned for each size and
    :math:`\ell` is linear in the number of edges between ``u`` and ``s``, its logarithm and its share of the
    degree of ``u``.

    Args:
        in_features: Width ``D`` of the node features.
        max_nodes: Size bound ``K``.
        hidden: Width of the network.
        identities: Number of nodes ``n`` to give a learned vector each. Then the policy knows each node of its
            training instances by name and can fit any distribution on them, but says nothing of other instances.
        min_nodes: See :class:`Policy`.
    """

    def __init__(
        self, in_features: int, max_nodes: int, hidden: int = 64, identities: int = 0, min_nodes: int = 1
    ) -> None:
        super().__init__(in_features, min_nodes)
        self.max_nodes = max_nodes
        self.per_node = nn.Linear(in_features, 5 * hidden)
        self.identity = nn.Embedding(identities, 5 * hidden) if identities else None
        self.by_size = nn.Embedding(max_nodes + 1, 2 * hidden)
        self.by_links = nn.Linear(3, hidden, bias=False)
        self.action_head = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.stop_head = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        nn.init.normal_(self.by_size.weight, std=0.1)
        if self.identity is not None:
            nn.init.normal_(self.identity.weight, std=0.5)

    def begin_level(self) -> AdditivePolicy:
        """Makes all flows equal, which is random growth: what is learned then is how to differ from it."""
        for head in (self.action_head, self.stop_head):
            for parameter in head[-1].parameters():
                nn.init.zeros_(parameter)
        return self

    def begin_stopping(self, choices: float) -> AdditivePolicy:
        """Gives stopping as much flow as so many ``choices`` of a node together.

        Random growth, which rarely stops, goes on to the size bound. Where explanations are known to be small, most of
        what it visits is far too large, and is looked at for nothing.
        """
        last = self.stop_head[-1]
        assert isinstance(last, nn.Linear)
        nn.init.constant_(last.bias, math.log(max(choices, 1.0)))
        return self

    def encode(self, instances: Instances, features: Tensor, only: Tensor | None = None) -> AdditiveEncoding:
        """See :class:`Policy`."""
        node = None
        if only is not None and only.numel() < len(instances):
            asked = torch.zeros(len(instances), dtype=torch.bool, device=only.device)
            asked[only] = True
            node = torch.nonzero(asked[instances.owner]).flatten()
        return self._encode(instances, features, node)

    def encode_visited(self, instances: Instances, features: Tensor, states: States) -> AdditiveEncoding:
        """See :class:`Policy`."""
        visited = torch.zeros(instances.num_nodes, dtype=torch.bool, device=features.device)
        visited[states.frontier] = True
        visited[states.members[states.subgraphs.filled]] = True
        return self._encode(instances, features, torch.nonzero(visited).flatten())

    def _encode(self, instances: Instances, features: Tensor, node: Tensor | None) -> AdditiveEncoding:
        """Encodes the nodes ``node`` ``[N]``, ascending flat positions; all if ``None``."""
        row = None
        if node is not None:
            row = torch.full_like(instances.owner, -1)
            row[node] = torch.arange(node.numel(), device=node.device)
        rows = self.per_node(self.standardize(features if node is None else features[node]))
        if self.identity is not None:
            rows = rows + (self.identity.weight if node is None else self.identity.weight[node])
        width = self.by_links.out_features
        candidate, member, root = rows.split([width, 2 * width, 2 * width], dim=1)
        # Sums over members shrink by the size bound, so that their scale does not depend on it.
        return AdditiveEncoding(candidate, member / self.max_nodes**0.5, root, instances.degree, row)

    def _summary(self, encoding: AdditiveEncoding, states: States) -> Tensor:
        """Adds up what the members say, shape ``[B, 2 H]``: first for actions, then for stopping."""
        place, filled = encoding.place(states.members.clamp(min=0)), states.subgraphs.filled.to(encoding.member)
        # An empty slot stands for a node that may be unknown; it counts nothing.
        return functional.embedding_bag(place.clamp(min=0), encoding.member, mode="sum", per_sample_weights=filled)

    def _whole(self, encoding: AdditiveEncoding, states: States, summary: Tensor, size: Tensor) -> Tensor:
        """Adds size and root to sums over members, ``[B, 2 H]``."""
        whole = summary + self.by_size(size)
        if states.rooted:
            whole = whole + encoding.root.index_select(0, encoding.place(states.members[:, 0]))
        return whole

    def _links(self, encoding: AdditiveEncoding, node: Tensor, links: Tensor) -> Tensor:
        count = links.to(encoding.candidate.dtype)
        share = count / encoding.degree[node].clamp(min=1)
        return self.by_links(torch.stack([count, torch.log1p(count), share], dim=1))

    def log_flows(self, encoding: AdditiveEncoding, states: States) -> tuple[Tensor, Tensor]:
        """See :class:`Policy`."""
        whole = self._whole(encoding, states, self._summary(encoding, states), states.size)
        for_action, for_stop = whole.chunk(2, dim=1)
        entries = states.frontier.numel()
        if entries <= _ENTRIES_AT_ONCE:
            action = self._actions(encoding, states, for_action, slice(None))
        else:
            # Of a large batch only the answers are kept, and what led to them is computed again for the gradient.
            parts = [slice(begin, begin + _ENTRIES_AT_ONCE) for begin in range(0, entries, _ENTRIES_AT_ONCE)]
            given = (self._actions, encoding, states, for_action)
            action = torch.cat([checkpoint(*given, part, use_reentrant=False) for part in parts])
        return action, self._bounded(self.stop_head(for_stop)[:, 0], states)

    def _actions(self, encoding: AdditiveEncoding, states: States, for_action: Tensor, part: slice) -> Tensor:
        """Returns the log-flows of adding the frontier nodes of ``part``."""
        node, state = states.frontier[part], states.frontier_state[part]
        # With gradients rows are selected, not indexed: it is faster, and the same on any number of threads.
        hidden = encoding.candidate.index_select(0, encoding.place(node)) + for_action.index_select(0, state)
        return self.action_head(hidden + self._links(encoding, node, states.links[part]))[:, 0]

    def log_inflows(self, encoding: AdditiveEncoding, states: States, parents: Tensor) -> Tensor:
        """See :class:`Policy`."""
        if states.inner_degree is None:
            raise ConfigError("These states do not know their inner degrees. Grow them with cuts=True.")
        state, slot = torch.nonzero(parents, as_tuple=True)
        node = states.members[state, slot]
        width = encoding.candidate.size(1)
        whole = self._whole(encoding, states, self._summary(encoding, states), (states.size - 1).clamp(min=0))
        place = encoding.place(node)
        member = encoding.member.index_select(0, place)[:, :width]
        hidden = whole.index_select(0, state)[:, :width] - member + encoding.candidate.index_select(0, place)
        hidden = hidden + self._links(encoding, node, states.inner_degree[state, slot])
        flows = hidden.new_full(parents.shape, -torch.inf)
        return flows.index_put((state, slot), self.action_head(hidden)[:, 0])
