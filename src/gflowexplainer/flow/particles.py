r"""The one sampler: particles that grow node by node and together stand for every connected subgraph.

Random growth begins with what is explained (or anywhere in a graph) and adds one neighbour after the other, each with
the same chance. The probability that it passes through a subgraph :math:`s` is the prior :math:`p_0(s)`; what is
sampled from is

.. math:: P(s) \propto p_0(s)\, R(s) .

A level holds different subgraphs of one size. Each grows by each of its neighbours, equal ones are merged, and if there
are more than ``width`` of them, some are dropped by optimal resampling: the heaviest stay, of the others a few are
drawn in proportion to their weight and carry the inverse of their chance along. So every subgraph has the right weight
in expectation, and where nothing is dropped the distribution is exact: enumeration is the same code with enough width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from gflowexplainer.graphs.flat_graphs import FAR
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import APART, Subgraphs
from gflowexplainer.ops.hashed_random import Stream, uniform
from gflowexplainer.ops.segments import pointers, ranges, segment_ids, segment_logsumexp, segment_max, segment_sum
from gflowexplainer.ops.sorting import first_of_each

_OUTSIDE, _BESIDE, _INSIDE = 0, 1, 3
_FINE = 1e8
"""Differences of worth below one part of so many are rounding, and are nobody's order."""


class AdditiveReward(Protocol):
    """A reward that is a closed form of the evidence inside a subgraph and of its size.

    Attributes:
        node_evidence: Of each node, shape ``[n]``.
        edge_evidence: Of each neighbour entry, the same from both ends, shape ``[m]``.
        counted: Whether a node counts in the size, shape ``[n]``.
    """

    @property
    def node_evidence(self) -> Tensor: ...

    @property
    def edge_evidence(self) -> Tensor: ...

    @property
    def counted(self) -> Tensor: ...

    def log_reward_of(self, evidence: Tensor, size: Tensor, instance: Tensor) -> Tensor:
        """Returns the log-reward of subgraphs by evidence, counted nodes and instance, all ``[C]``, shape ``[C]``."""
        ...


@dataclass(frozen=True)
class Unrewarded:
    """No reward at all: what is sampled is the prior.

    Attributes:
        counted, edge_evidence: See :class:`AdditiveReward`.
    """

    counted: Tensor
    edge_evidence: Tensor

    @property
    def node_evidence(self) -> Tensor:
        """Nothing, shape ``[n]``."""
        return torch.zeros_like(self.counted)

    def log_reward_of(self, evidence: Tensor, size: Tensor, instance: Tensor) -> Tensor:
        """Returns nothing for all, shape ``[C]``."""
        return torch.zeros_like(evidence)


@dataclass(frozen=True)
class Particles:
    """Weighted connected subgraphs of ``I`` instances.

    Attributes:
        subgraphs: ``B`` subgraphs, different from one another.
        log_weight: Logarithm of prior times reward of each, shape ``[B]``.
        exact: Whether nothing was dropped in an instance, so that its weights are exact, shape ``[I]``.
    """

    subgraphs: Subgraphs
    log_weight: Tensor
    exact: Tensor


@dataclass(frozen=True)
class _Level:
    """``P`` different subgraphs of one size.

    Attributes:
        instances: The instances.
        subgraphs: The subgraphs.
        log_prior: Logarithm of the prior that arrived at each, shape ``[P]``.
        key: Identifies the node set of each, shape ``[P]``.
        ptr: Where the nodes of the instance of each begin in ``place``, shape ``[P + 1]``.
        place: Whether each of these nodes is inside, beside or outside, one subgraph behind the other.
        gain: Evidence that each of these nodes would add, with its edges into the subgraph.
        evidence, size: Evidence of each, and its nodes that count, both ``[P]``.
        missing: Steps from each to the other end of an explained link, shape ``[P]``; ``None`` without links.
    """

    instances: Instances
    subgraphs: Subgraphs
    log_prior: Tensor
    key: Tensor
    ptr: Tensor
    place: Tensor
    gain: Tensor
    evidence: Tensor
    size: Tensor
    missing: Tensor | None

    @classmethod
    def empty(cls, instances: Instances, reward: AdditiveReward, max_nodes: int) -> _Level:
        """Begins one empty subgraph in each instance, beside which is what every explanation begins with."""
        every = torch.arange(len(instances), device=instances.device)
        width = max(1, min(max_nodes, instances.largest))
        rooted = instances.level != "graph"
        place = torch.full(
            (instances.num_nodes,), _OUTSIDE if rooted else _BESIDE, dtype=torch.int8, device=every.device
        )
        if rooted:
            place[instances.center] = _BESIDE
        return cls(
            instances=instances,
            subgraphs=Subgraphs(every, torch.full((every.numel(), width), -1, device=every.device)),
            log_prior=torch.zeros(every.numel(), dtype=torch.double, device=every.device),
            key=every * APART,
            ptr=instances.ptr,
            place=place,
            gain=reward.node_evidence.double(),
            evidence=torch.zeros(every.numel(), dtype=torch.double, device=every.device),
            size=torch.zeros(every.numel(), dtype=torch.double, device=every.device),
            missing=None if instances.other_end is None else torch.full_like(every, FAR),
        )

    def children(self, size: int) -> _Children:
        """Lists what the subgraphs grow into, to so many nodes each; equal ones are merged."""
        instances, instance = self.instances, self.subgraphs.instance
        beside = torch.nonzero(self.place == _BESIDE).flatten()
        row = segment_ids(self.ptr.diff(), self.place.numel())[beside]
        node = beside + (instances.ptr[instance] - self.ptr[:-1])[row]
        if self.missing is not None:
            # As long as the other end is missing, only nodes join after which it can still be reached in time.
            left = torch.minimum(self.missing[row], instances.hops_to_other_end[node])
            leads = (self.missing[row] == 0) | (size + left <= self._within[instance[row]])
            row, node = row[leads], node[leads]
        ways = torch.bincount(row, minlength=len(self.subgraphs)).clamp(min=1)
        log_prior = (self.log_prior - ways.double().log())[row]
        key = self.key[row] + instances.key[node]
        _, first, group = first_of_each(key)
        # In an order that does not depend on what else is in the batch.
        order = torch.argsort(key[first] - instance[row[first]] * APART)
        first, group = first[order], torch.argsort(order)[group]
        row, node = row[first], node[first]
        gain = self.gain[node + (self.ptr[:-1] - instances.ptr[instance])[row]]
        return _Children(row, node, segment_logsumexp(log_prior, group, first.numel()), self.evidence[row] + gain)

    def can_grow(self) -> Tensor:
        """Returns whether there is any node beside each subgraph, shape ``[P]``."""
        beside = segment_sum(
            (self.place == _BESIDE).long(), segment_ids(self.ptr.diff(), self.place.numel()), len(self.key)
        )
        return beside > 0

    @property
    def _within(self) -> Tensor:
        """Nodes within which the ends of each link are to be joined, shape ``[I]``."""
        assert self.instances.within is not None
        return self.instances.within.clamp(max=self.subgraphs.members.size(1))

    def grow(self, children: _Children, log_chance: Tensor, size: int, reward: AdditiveReward) -> _Level:
        """Returns the children as a level of so many nodes each."""
        instances, (row, node, log_prior, evidence) = self.instances, children
        instance, members = self.subgraphs.instance[row], self.subgraphs.members[row]
        members[:, size - 1] = node
        counts = instances.node_counts[instance]
        ptr = pointers(counts)
        taken = ranges(self.ptr[row], counts)[1]
        place, gain = self.place[taken], self.gain[taken]
        if size == 1:
            place.zero_()
        shift = ptr[:-1] - instances.ptr[instance]
        owner, entry = instances.neighbor_entries(node)
        beside = instances.neighbor[entry] + shift[owner]
        place[beside] |= _BESIDE
        gain[beside] += reward.edge_evidence[entry]
        place[node + shift] = _INSIDE
        missing = self.missing
        if missing is not None:
            missing = torch.minimum(missing[row], instances.hops_to_other_end[node])
        key = self.key[row] + instances.key[node]
        return replace(
            self,
            subgraphs=Subgraphs(instance, members),
            log_prior=log_prior - log_chance,
            key=key,
            ptr=ptr,
            place=place,
            gain=gain,
            evidence=evidence,
            size=self.size[row] + reward.counted[node],
            missing=missing,
        )

    def of(self, wanted: Tensor) -> _Level:
        """Keeps the subgraphs of the instances that are ``wanted``, shape ``[I]``."""
        stay = torch.nonzero(wanted[self.subgraphs.instance]).flatten()
        if stay.numel() == len(self.subgraphs):
            return self
        counts = self.ptr.diff()[stay]
        taken = ranges(self.ptr[stay], counts)[1]
        return replace(
            self,
            subgraphs=self.subgraphs[stay],
            log_prior=self.log_prior[stay],
            key=self.key[stay],
            ptr=pointers(counts),
            place=self.place[taken],
            gain=self.gain[taken],
            evidence=self.evidence[stay],
            size=self.size[stay],
            missing=None if self.missing is None else self.missing[stay],
        )


class _Children(NamedTuple):
    """``C`` different children of the subgraphs of a level: row and new node of each, and what comes with it.

    Attributes:
        row: The subgraph that it grows from, shape ``[C]``.
        node: The node that it gains, shape ``[C]``.
        log_prior: Logarithm of the prior that arrives, shape ``[C]``.
        evidence: Evidence inside, shape ``[C]``.
    """

    row: Tensor
    node: Tensor
    log_prior: Tensor
    evidence: Tensor

    def of(self, which: Tensor) -> _Children:
        """Takes some of them."""
        return _Children(*(column[which] for column in self))


@torch.no_grad()
def sample_particles(
    instances: Instances,
    reward: AdditiveReward,
    *,
    max_nodes: int,
    width: int,
    seed: int,
    min_nodes: int = 1,
    wanted: Tensor | None = None,
) -> Particles:
    """Samples connected subgraphs of every instance in proportion to prior and reward.

    Args:
        instances: ``I`` instances.
        reward: What subgraphs are worth.
        max_nodes: Nodes of a subgraph at most.
        width: Different subgraphs of each size and instance that are kept.
        seed: Names the draws.
        min_nodes: Nodes of a subgraph at least, where an instance has so many.
        wanted: Instances that are sampled, shape ``[I]``; all if not given.
    """
    count = len(instances)
    level = _Level.empty(instances, reward, max_nodes)
    if wanted is not None:
        level = level.of(wanted)
    largest = level.subgraphs.members.size(1)
    subgraphs, weights = [], []
    exact = torch.ones(count, dtype=torch.bool, device=instances.device)
    for size in range(1, largest + 1):
        children = level.children(size)
        if not children.row.numel():
            break
        instance = level.subgraphs.instance[children.row]
        counted = level.size[children.row] + reward.counted[children.node]
        value = reward.log_reward_of(children.evidence, counted, instance)
        kept, log_chance, dropped = _resample(children.log_prior + value, instance, instances, width, seed, size)
        exact &= ~dropped
        level = level.grow(children.of(kept), log_chance, size, reward)
        weight = level.log_prior + value[kept]
        ends = torch.ones_like(level.key, dtype=torch.bool) if size >= min_nodes else ~level.can_grow()
        if level.missing is not None:
            ends &= level.missing == 0
        subgraphs.append(level.subgraphs[ends])
        weights.append(weight[ends])
    return Particles(Subgraphs.cat(subgraphs), torch.cat(weights), exact)


def _resample(
    worth: Tensor, instance: Tensor, instances: Instances, width: int, seed: int, size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Keeps at most ``width`` of the candidates of each instance, by optimal resampling.

    Chances are in proportion to ``exp(worth)``, and 1 where that would be more than 1. One number for each instance
    draws all of them, at equal steps along their chances.

    Args:
        worth: Logarithm of what each is kept for, shape ``[C]``.
        instance: Instance of each, shape ``[C]``.
        instances: The instances.
        width: Candidates that are kept.
        seed: Names the draws.
        size: Nodes of the candidates.

    Returns:
        Which go on, ``[P]``, the logarithm of the chance that each had, ``[P]``, and where any was dropped, ``[I]``.
    """
    count = len(instances)
    number = torch.bincount(instance, minlength=count)
    dropped = number > width
    few = torch.nonzero(~dropped[instance]).flatten()
    if not dropped.any():
        return few, torch.zeros_like(worth), dropped
    many = torch.nonzero(dropped[instance]).flatten()
    # Rounded, so that what is worth the same stands in the same order alone and in a batch.
    order = many[torch.argsort((worth[many] * _FINE).round(), descending=True, stable=True)]
    order = order[torch.argsort(instance[order], stable=True)] if count > 1 else order
    owner = instance[order]
    bounds = pointers(number * dropped)
    rank = torch.arange(order.numel(), device=order.device) - bounds[owner]
    weight = (worth[order] - segment_max(worth, instance, count)[owner]).exp()
    # What is left of the weights, and of the width, from each candidate on, the heaviest first.
    sums = torch.cat([weight.new_zeros(1), weight.cumsum(0)])
    left, room = (sums[bounds[owner + 1]] - sums[:-1]).clamp(min=1e-300), (width - rank).clamp(min=0)
    certain = (weight * room >= left) & (room > 0)
    # Those that are certain stand in front; the first that is not tells the share of all that follow.
    sure = torch.bincount(owner[certain], minlength=count)
    first = (bounds[:-1] + sure).clamp(max=weight.numel() - 1)
    chance = torch.where(certain, 1.0, (weight * (room[first] / left[first])[owner]).clamp(max=1.0))
    steps = torch.cat([chance.new_zeros(1), chance.cumsum(0)])
    draw = uniform(seed, Stream.searching, instances.own_key, size)
    shift = (draw - steps[bounds[:-1]])[owner]
    before, after = steps[:-1] + shift, steps[1:] + shift
    taken = torch.nonzero(certain | (after.floor() > before.floor())).flatten()
    kept = torch.cat([few, order[taken]])
    log_chance = torch.cat([worth.new_zeros(few.numel()), chance[taken].clamp(min=1e-300).log()])
    return kept, log_chance, dropped
