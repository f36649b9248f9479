"""The paper's policy network (equations 7 to 9, 12 and 13)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from gflowexplainer.choices import Propagation
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.policy import Policy
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.segments import pointers, ranges, segment_logsumexp, segment_sum
from gflowexplainer.ops.sorting import find_sorted


@dataclass(frozen=True)
class PaperEncoding:
    """What depends on the instances alone.

    Attributes:
        features: Input features, shape ``[n, D]``.
        spread_features: The same after propagation over the instance, shape ``[n, D]``.
    """

    features: Tensor
    spread_features: Tensor


class PaperPolicy(Policy):
    r"""Indicators, APPNP, an MLP, and STOP through attention.

    The features of a node are extended by two indicators, of the start and of the members (equation 7). APPNP
    is linear: with :math:`P = \sum_{l<L} \alpha (1-\alpha)^l \hat{A}^l + (1-\alpha)^L \hat{A}^L` the
    representation of node ``u`` is :math:`\Theta_1 [(PX)_u, (P 1_{v_0})_u, (P 1_s)_u]` (equation 8). An MLP
    follows (equation 9), then a linear head whose output is the log-flow. STOP is one more row, the
    attention-weighted mean of the others (equations 12 and 13). Equation 12 normalises over the frontier and
    equation 13 sums over frontier and members; here both run over frontier and members.

    Args:
        in_features: Width ``D`` of the node features.
        hidden: Width of the network.
        alpha: Teleport weight of APPNP, as in equation 8.
        layers: Propagation steps, at most 3.
        propagation: ``"graph"``: over the whole instance. ``"frontier"``: over the graph induced on members and
            frontier, as printed.
        min_nodes: See :class:`Policy`.
    """

    def __init__(
        self,
        in_features: int,
        *,
        hidden: int = 64,
        alpha: float = 0.85,
        layers: int = 3,
        propagation: str = "graph",
        min_nodes: int = 1,
    ) -> None:
        super().__init__(in_features, min_nodes)
        if not 0 <= alpha <= 1:
            raise ConfigError(f"'alpha' of APPNP must lie in [0, 1] (got {alpha}).")
        if not 0 <= layers <= 3:
            raise ConfigError(f"'layers' of APPNP must lie in 0..3 (got {layers}).")
        self.alpha, self.layers = alpha, layers
        self.propagation = Propagation.of("propagation", propagation)
        self.transform = nn.Linear(in_features + 2, hidden, bias=False)
        self.mlp = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.attention = nn.Linear(hidden, 1, bias=False)
        self.head = nn.Linear(hidden, 1)

    def encode(self, instances: Instances, features: Tensor) -> PaperEncoding:
        """See :class:`Policy`."""
        features = self.standardize(features)
        degree = instances.degree.to(features.dtype) + 1
        row = torch.repeat_interleave(torch.arange(instances.num_nodes, device=features.device), instances.degree)
        return PaperEncoding(features, self._propagate(features, row, instances.neighbor, degree))

    def _propagate(self, signal: Tensor, row: Tensor, column: Tensor, degree: Tensor) -> Tensor:
        """Applies APPNP to ``signal`` ``[n, C]``; ``row`` ascends, self loops are added, ``degree`` counts them."""
        scale = degree.rsqrt()
        weight, own = scale[row] * scale[column], (1 / degree)[:, None]
        first = pointers(torch.bincount(row, minlength=signal.size(0)))
        out = signal
        for _ in range(self.layers):
            moved = embedding_bag(column, out, first, mode="sum", per_sample_weights=weight, include_last_offset=True)
            out = (1 - self.alpha) * (moved + own * out) + self.alpha * signal
        return out

    def _signals(self, encoding: PaperEncoding, states: States) -> tuple[Tensor, Tensor, Tensor]:
        """Propagates features and indicators for each state.

        Returns:
            Propagated rows ``[T, D + 2]`` for members and frontier, the state of each, and which row belongs to
            each member slot and then to each frontier entry.
        """
        if self.propagation == Propagation.graph:
            return self._signals_on_graph(encoding, states)
        return self._signals_on_frontier(encoding, states)

    @staticmethod
    def _candidates(states: States) -> tuple[Tensor, Tensor]:
        """Lists the members and then the frontier of all states: state and node of each."""
        state, slot = torch.nonzero(states.subgraphs.filled, as_tuple=True)
        return (
            torch.cat([state, states.frontier_state]),
            torch.cat([states.members[state, slot], states.frontier]),
        )

    def _signals_on_graph(self, encoding: PaperEncoding, states: States) -> tuple[Tensor, Tensor, Tensor]:
        instances = states.instances
        counts = instances.node_counts[states.instance]
        first = pointers(counts)[:-1]
        shift = first - instances.ptr[states.instance]
        owner, node = ranges(instances.ptr[states.instance], counts)
        entry, neighbor = instances.neighbors_of(node)
        indicator = encoding.features.new_zeros(node.numel(), 2)
        state, slot = torch.nonzero(states.subgraphs.filled, as_tuple=True)
        indicator[states.members[state, slot] + shift[state], 1] = 1
        if states.rooted:
            indicator[states.members[:, 0] + shift, 0] = 1
        degree = instances.degree[node].to(indicator.dtype) + 1
        spread = self._propagate(indicator, entry, neighbor + shift[owner[entry]], degree)
        state, node = self._candidates(states)
        rows = torch.cat([encoding.spread_features[node], spread[node + shift[state]]], dim=1)
        return rows, state, node

    def _signals_on_frontier(self, encoding: PaperEncoding, states: States) -> tuple[Tensor, Tensor, Tensor]:
        state, node = self._candidates(states)
        total = states.instances.num_nodes
        is_member = torch.arange(node.numel(), device=node.device) < int(states.size.sum())
        keys, order = torch.sort(state * total + node)
        entry, neighbor = states.instances.neighbors_of(node)
        column, found = find_sorted(keys, state[entry] * total + neighbor)
        row, column = entry[found], order[column[found]]
        indicator = is_member[:, None].to(encoding.features.dtype)
        root = torch.zeros_like(indicator)
        if states.rooted:
            root[node == states.members[state, 0]] = 1
        signal = torch.cat([encoding.features[node], root, indicator], dim=1)
        degree = torch.bincount(row, minlength=node.numel()).to(signal.dtype) + 1
        return self._propagate(signal, row, column, degree), state, node

    def log_flows(self, encoding: PaperEncoding, states: States) -> tuple[Tensor, Tensor]:
        """See :class:`Policy`."""
        rows, state, _ = self._signals(encoding, states)
        hidden = self.mlp(self.transform(rows))
        action = self.head(hidden[int(states.size.sum()) :])[:, 0]
        attention = self.attention(hidden)[:, 0]
        norm = segment_logsumexp(attention, state, len(states))
        gamma = (attention - norm.index_select(0, state)).exp()
        stop = self.head(segment_sum(gamma[:, None] * hidden, state, len(states)))[:, 0]
        return action, self._bounded(stop, states)

    def log_inflows(self, encoding: PaperEncoding, states: States, parents: Tensor) -> Tensor:
        """See :class:`Policy`; every parent is really built, as what it propagates over is not what the state does."""
        state, slot = torch.nonzero(parents, as_tuple=True)
        built = states.without(state, slot)
        rows, parent, candidate = self._signals(encoding, built)
        # The node that a parent lacks stands once in its frontier.
        hit = torch.nonzero(candidate == states.members[state, slot][parent]).flatten()
        action = self.head(self.mlp(self.transform(rows[hit])))[:, 0]
        flows = action.new_full(parents.shape, -torch.inf)
        return flows.index_put((state[parent[hit]], slot[parent[hit]]), action)
