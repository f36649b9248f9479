"""The default policy: a small network over sums of what the members of a state say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.policy import Flows, Policy
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.segments import segment_ids, segment_sum

_ENTRIES_AT_ONCE = 1 << 18
"""Frontier nodes that the policy looks at together: some hundred MiB."""


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


class FrontierEntries(NamedTuple):
    """The frontiers of states, ``F`` entries.

    Attributes:
        place: Where the node of each stands among the known ones, shape ``[F]``.
        state: State of each, shape ``[F]``.
        links: Its :func:`link_features`, shape ``[F, 3]``.
    """

    place: Tensor
    state: Tensor
    links: Tensor


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

    prepares_all = True

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
        return self._encode(instances, features, _visited(states))

    def _encode(self, instances: Instances, features: Tensor, node: Tensor | None) -> AdditiveEncoding:
        """Encodes the nodes ``node`` ``[N]``, ascending flat positions; all if ``None``."""
        row = None if node is None else _places(instances, node)
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

    def log_flows(self, encoding: AdditiveEncoding, states: States) -> tuple[Tensor, Tensor]:
        """See :class:`Policy`."""
        whole = self._whole(encoding, states, self._summary(encoding, states), states.size)
        links = link_features(encoding.degree, states.frontier, states.links, encoding.candidate.dtype)
        entries = FrontierEntries(encoding.place(states.frontier), states.frontier_state, links)
        action, stop = self._heads(whole, encoding.candidate, entries)
        return action, self._bounded(stop, states)

    def prepare(
        self, instances: Instances, features: Tensor, states: States, parents: Tensor | None = None
    ) -> Callable[[], Flows]:
        """See :class:`Policy`.

        What members and roots say is linear in their features, so these are added up once instead of what they say.
        """
        if parents is not None:
            return super().prepare(instances, features, states, parents)
        node = _visited(states)
        row = _places(instances, node)
        known = self.standardize(features[node])
        member = row[states.members[states.subgraphs.filled]]
        inside = segment_ids(states.size, member.numel())
        root = row[states.members[:, 0]] if states.rooted else None
        scale = self.max_nodes**-0.5
        inputs = segment_sum(known[member], inside, len(states)) * scale
        inputs = inputs if root is None else torch.cat([inputs, known[root]], dim=1)
        scaled_size = torch.arange(self.max_nodes + 1, device=known.device)[:, None] * scale
        links = link_features(instances.degree, states.frontier, states.links, known.dtype)
        entries = FrontierEntries(row[states.frontier], states.frontier_state, links)
        width = self.by_links.out_features
        widths = [width, 2 * width, 2 * width]

        def flows() -> Flows:
            (by_candidate, by_member, by_root), bias = (
                self.per_node.weight.split(widths),
                self.per_node.bias.split(widths),
            )
            candidate = functional.linear(known, by_candidate, bias[0])
            by_size = self.by_size.weight + scaled_size * bias[1]
            if root is not None:
                by_member, by_size = torch.cat([by_member, by_root], dim=1), by_size + bias[2]
            whole = torch.addmm(by_size.index_select(0, states.size), inputs, by_member.t())
            if self.identity is not None:
                own = self.identity.weight.index_select(0, node).split(widths, dim=1)
                candidate = candidate + own[0]
                whole = whole + segment_sum(own[1].index_select(0, member), inside, len(states)) * scale
                whole = whole if root is None else whole + own[2].index_select(0, root)
            action, stop = self._heads(whole, candidate, entries)
            return Flows(action, self._bounded(stop, states))

        return flows

    def _heads(self, whole: Tensor, candidate: Tensor, entries: FrontierEntries) -> tuple[Tensor, Tensor]:
        """Returns log-flows of adding each frontier node ``[F]`` and of stopping ``[B]``, not bounded by size.

        Args:
            whole: What there is to say of each state, for actions and for stopping, shape ``[B, 2 H]``.
            candidate: What there is to say of each node that may be added, shape ``[N, H]``.
            entries: The frontier.
        """
        for_action, for_stop = whole.chunk(2, dim=1)
        count = entries.state.numel()
        if count <= _ENTRIES_AT_ONCE:
            action = self._actions(for_action, candidate, entries, slice(None))
        else:
            # Of a large batch only the answers are kept, and what led to them is computed again for the gradient.
            parts = [slice(begin, begin + _ENTRIES_AT_ONCE) for begin in range(0, count, _ENTRIES_AT_ONCE)]
            given = (self._actions, for_action, candidate, entries)
            action = torch.cat(
                [checkpoint(*given, part, use_reentrant=False, preserve_rng_state=False) for part in parts]
            )
        return action, self.stop_head(for_stop)[:, 0]

    def _actions(self, for_action: Tensor, candidate: Tensor, entries: FrontierEntries, part: slice) -> Tensor:
        """Returns the log-flows of adding the frontier nodes of ``part``."""
        # With gradients rows are selected, not indexed: it is faster, and the same on any number of threads.
        hidden = candidate.index_select(0, entries.place[part]) + for_action.index_select(0, entries.state[part])
        hidden = torch.addmm(hidden, entries.links[part], self.by_links.weight.t())
        return self.action_head(hidden)[:, 0]

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
        links = link_features(encoding.degree, node, states.inner_degree[state, slot], hidden.dtype)
        hidden = hidden + self.by_links(links)
        flows = hidden.new_full(parents.shape, -torch.inf)
        return flows.index_put((state, slot), self.action_head(hidden)[:, 0])


def _visited(states: States) -> Tensor:
    """Finds the nodes that states hold or may gain, as ascending flat positions ``[N]``."""
    visited = torch.zeros(states.instances.num_nodes, dtype=torch.bool, device=states.frontier.device)
    visited[states.frontier] = True
    visited[states.members[states.subgraphs.filled]] = True
    return torch.nonzero(visited).flatten()


def _places(instances: Instances, node: Tensor) -> Tensor:
    """Says where each node of the instances stands among ``node`` ``[N]``, shape ``[n]``; -1 where it does not."""
    row = torch.full_like(instances.owner, -1)
    row[node] = torch.arange(node.numel(), device=node.device)
    return row


def link_features(degree: Tensor, node: Tensor, links: Tensor, dtype: torch.dtype) -> Tensor:
    """Describes how closely nodes ``[F]`` are joined to a state by so many ``links`` ``[F]``, shape ``[F, 3]``.

    The number of links, its logarithm and its share of the ``degree`` ``[n]`` of the node.
    """
    count = links.to(dtype)
    return torch.stack([count, torch.log1p(count), count / degree[node].clamp(min=1)], dim=1)
