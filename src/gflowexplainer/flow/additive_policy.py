"""The policy of rewards that ask the model: a small network over sums of what the members of a state say."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.policy import Policy
from gflowexplainer.flow.states import States


class _Rows(NamedTuple):
    """What is to say of the ``N`` nodes that states hold or may gain.

    Attributes:
        candidate: Of a node that may be added, shape ``[N, H]``.
        member: Of a member, for actions and for stopping, shape ``[N, 2 H]``.
        root: Of the start node, for actions and for stopping, shape ``[N, 2 H]``.
        place: Where each node of the instances stands among the ``N``, shape ``[n]``.
    """

    candidate: Tensor
    member: Tensor
    root: Tensor
    place: Tensor


class AdditivePolicy(Policy):
    r"""A two-layer network over sums of what the members say.

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

    def log_flows(self, encoding: Tensor, states: States) -> tuple[Tensor, Tensor]:
        """See :class:`Policy`."""
        rows = self._rows(encoding, states)
        # With gradients rows are selected, not indexed: it is faster, and the same on any number of threads.
        for_action, for_stop = self._whole(rows, states, states.size).chunk(2, dim=1)
        hidden = rows.candidate.index_select(0, rows.place[states.frontier])
        hidden = hidden + for_action.index_select(0, states.frontier_state)
        hidden = hidden + self._by_links(states, states.frontier, states.links)
        return self.action_head(hidden)[:, 0], self._bounded(self.stop_head(for_stop)[:, 0], states)

    def log_inflows(self, encoding: Tensor, states: States, parents: Tensor) -> Tensor:
        """See :class:`Policy`."""
        if states.inner_degree is None:
            raise ConfigError("These states do not know their inner degrees. Grow them with cuts=True.")
        rows = self._rows(encoding, states)
        state, slot = torch.nonzero(parents, as_tuple=True)
        node = states.members[state, slot]
        place, width = rows.place[node], rows.candidate.size(1)
        whole = self._whole(rows, states, (states.size - 1).clamp(min=0))[:, :width].index_select(0, state)
        hidden = whole - rows.member.index_select(0, place)[:, :width] + rows.candidate.index_select(0, place)
        hidden = hidden + self._by_links(states, node, states.inner_degree[state, slot])
        flows = hidden.new_full(parents.shape, -torch.inf)
        return flows.index_put((state, slot), self.action_head(hidden)[:, 0])

    def _rows(self, features: Tensor, states: States) -> _Rows:
        """Looks at the nodes that states hold or may gain, from the standardised features of all ``[n, D]``."""
        visited = torch.zeros(features.size(0), dtype=torch.bool, device=features.device)
        visited[states.frontier] = True
        visited[states.members[states.subgraphs.filled]] = True
        node = torch.nonzero(visited).flatten()
        rows = self.per_node(features[node])
        if self.identity is not None:
            rows = rows + self.identity.weight.index_select(0, node)
        width = self.by_links.out_features
        candidate, member, root = rows.split([width, 2 * width, 2 * width], dim=1)
        # Sums over members shrink by the size bound, so that their scale does not depend on it.
        return _Rows(candidate, member * self.max_nodes**-0.5, root, torch.cumsum(visited, 0) - 1)

    def _whole(self, rows: _Rows, states: States, size: Tensor) -> Tensor:
        """Adds up what members, root and size say of each state, ``[B, 2 H]``: first for actions, then for stopping."""
        # An empty slot stands for some node, which counts nothing.
        place, filled = rows.place[states.members.clamp(min=0)].clamp(min=0), states.subgraphs.filled.to(rows.member)
        whole = functional.embedding_bag(place, rows.member, mode="sum", per_sample_weights=filled)
        whole = whole + self.by_size(size)
        return whole + rows.root.index_select(0, rows.place[states.members[:, 0]]) if states.rooted else whole

    def _by_links(self, states: States, node: Tensor, links: Tensor) -> Tensor:
        """Looks at how closely nodes ``[F]`` are joined to a state by so many ``links`` ``[F]``, shape ``[F, H]``.

        By the number of links, its logarithm and its share of the degree of the node.
        """
        count = links.to(self.by_links.weight.dtype)
        share = count / states.instances.degree[node].clamp(min=1)
        return self.by_links(torch.stack([count, torch.log1p(count), share], dim=1))
