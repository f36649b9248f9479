r"""The consensus reward: what preserves predictions in general, learned over many instances, summed up for a subgraph.

How strongly a subgraph preserves a prediction can be measured (:class:`~gflowexplainer.rewards.context.ContextReward`),
but the measurement is noisy and peculiar to the instance. What is common to all instances is not: a linear model with
few parameters, fitted to the measurements of random subgraphs of all instances at once, says what a node of some kind
and an edge between two kinds add to the log-odds of a prediction, or to its value. The evidence of a subgraph is the
sum over its nodes and inner edges,

.. math:: E(s) = \sum_{v \in s} w^\top f_v + \sum_{\{u, v\} \subseteq s,\, uv \in E} \big( w_e + f_u^\top W f_v \big)

and its reward the evidence *per node*, :math:`\log R(s) = E(s) / |s|`, so that a subgraph gains nothing by growing
beyond what speaks; of two that say the same, the smaller one is a little better. Where what each node does was measured
in the instance itself and is believed, more of it counts more: :math:`\log R(s) = E(s) / |s|^{3/4}`. Where a few nodes
with most evidence are not enough for the model (:mod:`~gflowexplainer.rewards.belief`), how far they hold together
(:mod:`~gflowexplainer.rewards.cohesion`) is added. Nothing here knows how large a subgraph may become.

Both ends of an explained link are in every subgraph and tell none apart. They count neither in the evidence nor in the
size: otherwise ends that speak against the link would be outweighed by ever more nodes around them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.choices import Direction
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_edges
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.ops.numpy_segments import found_in, ordered_pairs
from gflowexplainer.ops.segments import segment_max, segment_sum
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.cohesion import closeness
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.evidence import Evidence

Numbers = TypeVar("Numbers", Tensor, NDArray[Any])
_LEAST_SPREAD = 0.2
_TIE = 0.03
"""What doubling a subgraph costs, in units of the spread of log-rewards over ln 2: enough to decide between equals."""
_SQUARE = 256
"""Nodes of a single instance up to which the evidence of its edges is written out as a matrix."""
_STRONGEST = 2.2
"""Spreads between the usual subgraph of a graph and its strongest pair of nodes, at most."""


class ConsensusReward(Reward):
    """The evidence of a subgraph under a :class:`Consensus`; the model is not evaluated.

    Args:
        predictor: The explained model.
        instances: The instances.
        consensus: What was learned.
        raw: Raw evidence of every node, shape ``[n, R]``.
        own: What the model loses without each node, shape ``[n, 1]``, where the consensus needs it.
        direction: Of a value, what is explained: ``"any"`` contribution, those that raise it or that lower it.
        **settings: See :class:`Reward`.
    """

    def __init__(
        self,
        predictor: Predictor,
        instances: Instances,
        *,
        consensus: Consensus,
        raw: Tensor,
        own: Tensor | None = None,
        direction: Direction = Direction.any,
        **settings: Any,
    ) -> None:
        super().__init__(predictor, instances, **{**settings, "removal": consensus.chosen.removal})
        if consensus.needs_own and own is None:
            raise ConfigError("This consensus needs what the model loses without each node. Pass it as 'own'.")
        if self.target.label is not None and direction != Direction.any:
            raise ConfigError(
                f"direction='{direction}' tells contributions to a value apart, but the model predicts classes. "
                "Leave it out, or pass the class to explain as 'target'."
            )
        evidence = Evidence.of(instances, raw, consensus.basis, consensus.chosen.evidence)
        weight = consensus.weights_of(self.target)
        if weight.size(1) != evidence.num_columns:
            raise CheckpointError(
                f"The consensus has {weight.size(1)} weights for descriptions of {evidence.num_columns} numbers. It "
                "belongs to another model or another version; fit again."
            )
        self.consensus, self.direction = consensus, direction
        self.node_value, self._learned_edges = evidence.node_values(weight), evidence.entry_values(weight)
        self.entry_value = self._learned_edges
        if consensus.cohesion:
            self.entry_value = self.entry_value + consensus.cohesion * closeness(instances)
        self.own = own[:, 0].double() if own is not None and consensus.needs_own else None
        self._tie = torch.zeros(len(instances), dtype=torch.double, device=instances.device)
        self._counted: Tensor | None = None
        if instances.other_end is not None:
            self._counted = torch.ones(instances.num_nodes, dtype=torch.bool, device=instances.device)
            self._counted[instances.roots] = False

    def node_values(self) -> Tensor:
        """Returns what speaks for each node, itself and its edges on average, in units of log-reward, ``[n, 2]``."""
        instances = self.instances
        if self.node_value.is_cpu:
            return torch.from_numpy(self._node_values_on_cpu())
        edges = self._edge_sums / instances.degree.clamp(min=1)
        return self.temper(torch.stack([self.node_value, edges], dim=1), instances.owner)

    def _node_values_on_cpu(self) -> NDArray[Any]:
        """Does the same by NumPy, which begins sooner."""
        instances = self.instances
        edges, degree = self._edge_sums.numpy(), instances.array("degree")
        exponent = (self.beta / self.spread.numpy())[instances.array("owner")]
        return np.array((self.node_value.numpy() * exponent, edges / np.maximum(degree, 1) * exponent)).T

    def contributions(self) -> Tensor:
        """Returns what each node adds to the log-odds of the class or to the value, signed, shape ``[n]``.

        It is the instance's own :meth:`~gflowexplainer.rewards.occlusion.NodeLosses.evidence`, where that is believed;
        else what the consensus says of the node and half of what it says of its edges.
        """
        return self._said() if self.own is None else self.own

    def _said(self) -> Tensor:
        """Returns the evidence of each node and half of that of its edges, as it was learned, shape ``[n]``."""
        edges = self._sums_over_edges(self._learned_edges) if self.consensus.cohesion else self._edge_sums
        return self.node_value + edges / 2

    @cached_property
    def _edge_sums(self) -> Tensor:
        """What all edges of each node count, shape ``[n]``."""
        return self._sums_over_edges(self.entry_value)

    def _sums_over_edges(self, value: Tensor) -> Tensor:
        """Adds up a value of neighbour entries ``[m]`` over those of each node, shape ``[n]``."""
        instances = self.instances
        if not value.is_cpu:
            return segment_sum(value, instances.neighbor_row, instances.num_nodes)
        row = instances.array("neighbor_row")
        return torch.from_numpy(np.bincount(row, weights=value.numpy(), minlength=instances.num_nodes))

    @property
    def follows_own(self) -> bool:
        """See :class:`Reward`."""
        return self.consensus.uses_own and self.target.label is not None

    def said_share(self) -> Tensor | None:
        """Returns the evidence of each node as a share of the strongest of its graph, in [0, 1], shape ``[n]``.

        ``None`` where one place is explained, or by what was measured in the instance itself.
        """
        instances = self.instances
        if instances.level != "graph" or self.consensus.uses_own or self.target.label is None:
            return None
        value = self._said().clamp(min=0)
        top = self._strongest(value)[instances.owner]
        return torch.where(top > 0, value / top.clamp(min=1e-300), 0.0)

    def speaks_against(self) -> Tensor | None:
        """Marks the nodes without which the class would be held better, shape ``[n]``; never the explained one.

        ``None`` where the distribution does not follow the instance's own evidence, and of values, with two directions.
        """
        if self.own is None or not self.follows_own:
            return None
        return (self.own < 0).index_fill(0, self.instances.roots, value=False)

    def own_share(self) -> Tensor | None:
        """Returns what each node adds as a share of the strongest of its instance, in [0, 1], shape ``[n]``.

        A class of graphs rests on connected places, of which no node may be needed by itself: there a node counts half
        by what it adds and half by what its neighbours do. Where even without the strongest little is lost, compared
        with other instances, there are others in its place: single losses say little, and all shares are small. The
        explained node itself has a share of 1. ``None`` where the instance's own evidence is not believed.
        """
        if self.own is None:
            return None
        instances, added = self.instances, self._directed(self.own).clone()
        added[instances.roots] = 0
        said = self._strongest(added)
        said = said / said.clamp(min=max(self.consensus.strongest_loss, 1e-300))
        if instances.level == "graph" and self.target.label is not None:
            around = segment_sum(added[instances.neighbor], instances.neighbor_row, instances.num_nodes)
            added = (added + around / instances.degree.clamp(min=1)) / 2
        top = self._strongest(added)
        share = (said / top.clamp(min=1e-300))[instances.owner] * added.clamp(min=0)
        share[instances.roots] = 1.0
        return share

    def _strongest(self, value: Tensor) -> Tensor:
        """Returns the largest value ``[n]`` of each instance, at least 0, shape ``[I]``."""
        return segment_max(value.clamp(min=0), self.instances.owner, len(self.instances), empty=0.0)

    def calibrate(self, subgraphs: Subgraphs) -> None:
        """Measures the spread of log-rewards; see :class:`Reward`.

        A graph may have several places that speak, one of them a pair of nodes far stronger than any random subgraph.
        Its spread is then a share of the way from the usual subgraph to that pair, so that the others are seen too.
        """
        super().calibrate(subgraphs)
        instances = self.instances
        if not self.relative or instances.level != "graph" or not self.entry_value.numel():
            return
        number, owner = len(instances), subgraphs.instance
        usual = segment_sum(self._log_score(subgraphs).double(), owner, number)
        usual = usual / torch.bincount(owner, minlength=number).clamp(min=1)
        row = instances.neighbor_row
        pair = self.node_value[row] + self.node_value[instances.neighbor] + self.entry_value
        pair = self._directed(pair) / 2 ** (1 - self.consensus.growth)
        best = segment_max(pair.double(), instances.owner[row], number)
        gap = ((best - usual) / _STRONGEST).to(self.spread)
        self.spread = torch.where(torch.isfinite(gap), torch.maximum(self.spread, gap), self.spread)

    def settle_spread(self) -> None:
        """Puts a bound below the spread of each instance: a share of the usual one, of the instances fitted on.

        A few random subgraphs may miss the one node that matters. What is left then would make its reward enormous.
        """
        if not self.consensus.spread:
            self.consensus = replace(self.consensus, spread=float(self.spread.median()))
        least = _LEAST_SPREAD * self.consensus.spread
        self.spread = self.spread.clamp(min=least)
        self._tie = _TIE * self.spread.double()

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """See :class:`Reward`."""
        super().load_tensors(tensors)
        self._tie = _TIE * self.spread.double()

    def log_score(self, subgraphs: Subgraphs) -> Tensor:
        """See :class:`Reward`; nothing is cached, as looking it up would cost what computing it does."""
        self.num_requests += len(subgraphs)
        return self._log_score(subgraphs)

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        if subgraphs.members.is_cpu:
            return torch.from_numpy(self._log_score_on_cpu(subgraphs))
        return self._per_node(*self._summed(subgraphs), subgraphs.instance)

    def _log_score_grown(self, subgraphs: Subgraphs, row: Tensor, node: Tensor) -> Tensor:
        """See :class:`Reward`; a node adds its own evidence and that of its edges into the subgraph."""
        if self.instances.other_end is not None:
            return super()._log_score_grown(subgraphs, row, node)
        self.num_requests += row.numel()
        evidence, size = self._summed(subgraphs)
        filled = subgraphs.filled
        number, width = torch.nonzero(filled)[:, 0], self.instances.num_nodes
        owner, entry = self.instances.neighbor_entries(subgraphs.members[filled])
        at, found = find_sorted(row * width + node, number[owner] * width + self.instances.neighbor[entry])
        there = torch.nonzero(found).flatten()
        added = self.node_value[node].index_add(0, at[there], self.entry_value[entry[there]])
        return self._per_node(evidence[row] + added, size[row] + 1, subgraphs.instance[row])

    def _per_node(self, evidence: Tensor, size: Tensor, instance: Tensor) -> Tensor:
        """Returns the log-score of subgraphs of some evidence and size."""
        size = size.clamp(min=1)
        growth = self.consensus.growth
        scale = size ** (1 - growth) if growth else size
        return self._directed(evidence) / scale - self._tie.index_select(0, instance) * size.log()

    def _log_score_on_cpu(self, subgraphs: Subgraphs) -> NDArray[Any]:
        """Does the same by NumPy, which begins sooner."""
        evidence, size = self._summed_on_cpu(subgraphs)
        size = np.maximum(size, 1)
        growth = self.consensus.growth
        scale = (torch.from_numpy(size) ** (1 - growth)).numpy() if growth else size
        tie = self._tie.numpy()
        if tie.size > 1:
            tie = tie[subgraphs.instance.numpy()]
        return self._directed(evidence) / scale - tie * np.log(size)

    def _summed(self, subgraphs: Subgraphs) -> tuple[Tensor, Tensor]:
        """Sums up the evidence of subgraphs, and counts their nodes, as real numbers, both ``[B]``."""
        if subgraphs.members.is_cpu:
            summed, size = self._summed_on_cpu(subgraphs)
            return torch.from_numpy(summed), torch.from_numpy(size)
        members = subgraphs.members.clamp(min=0)
        filled = subgraphs.filled if self._counted is None else subgraphs.filled & self._counted[members]
        evidence = torch.where(filled, self.node_value[members], 0).sum(dim=1)
        inner = inner_edges(self.instances, subgraphs)
        # An edge has the same value seen from either end.
        evidence.index_add_(0, inner.subgraph, self.entry_value[inner.entry])
        return evidence, filled.sum(dim=1).double()

    def _summed_on_cpu(self, subgraphs: Subgraphs) -> tuple[NDArray[Any], NDArray[Any]]:
        """Does the same by NumPy, which begins sooner."""
        members = subgraphs.members.numpy()
        filled, member = members >= 0, np.maximum(members, 0)
        counted = filled if self._counted is None else filled & self._counted.numpy()[member]
        evidence = np.where(counted, self.node_value.numpy()[member], 0).sum(axis=1)
        nodes = filled.sum(axis=1)
        one, other = ordered_pairs(int(nodes.max(initial=0)))
        small = len(self.instances) == 1 and self.instances.num_nodes <= _SQUARE
        sum_up = self._sum_of_matrix if small else self._sum_of_entries
        evidence = evidence + sum_up(members, filled, one, other)
        return evidence, (nodes if counted is filled else counted.sum(axis=1)).astype(np.float64)

    def _sum_of_entries(
        self, members: NDArray[Any], filled: NDArray[Any], one: NDArray[Any], other: NDArray[Any]
    ) -> NDArray[Any]:
        """Sums up the evidence of edges between members ``[B, K]``, by slots ``one`` and ``other``: ``[B]``."""
        # Slots are filled from the front, so the later one tells whether there are two.
        row, pair = filled.take(other, axis=1).nonzero()
        wanted = members[row, one[pair]] * self.instances.num_nodes + members[row, other[pair]]
        entry, found = found_in(self.instances.array("neighbor_key"), wanted)
        value = self.entry_value.numpy()[entry[found]]
        return np.bincount(row[found], weights=value, minlength=members.shape[0])

    def _sum_of_matrix(
        self, members: NDArray[Any], filled: NDArray[Any], one: NDArray[Any], other: NDArray[Any]
    ) -> NDArray[Any]:
        """Does the same for a single small instance: pairs that are no neighbours add nothing."""
        place = members.take(one, axis=1) * self.instances.num_nodes + members.take(other, axis=1)
        pairs = self._matrix[place]
        if not filled.all():
            pairs *= filled.take(other, axis=1)
        row = np.arange(members.shape[0]).repeat(one.size)
        return np.bincount(row, weights=pairs.reshape(-1), minlength=members.shape[0])

    @cached_property
    def _matrix(self) -> NDArray[Any]:
        """The evidence of the edge between each pair of nodes of a single small instance, ``[n * n]``."""
        value = np.zeros(self.instances.num_nodes**2)
        value[self.instances.array("neighbor_key")] = self.entry_value.numpy()
        return value

    def _directed(self, value: Numbers) -> Numbers:
        """Turns signed contributions to a value into what is looked for; evidence for a class is signed already."""
        if self.target.label is not None or self.direction == Direction.up:
            return value
        return abs(value) if self.direction == Direction.any else -value
