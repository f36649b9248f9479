"""Rollouts of the additive policy on a CPU: NumPy keeps the books, torch evaluates the network.

What :func:`~gflowexplainer.flow.sampling.roll_out` does with :func:`~gflowexplainer.flow.sampling.follow_policy`, with
the same random numbers, so that the same subgraphs come out. There every step is some hundred calls of torch, each of
which takes longer to begin than to work on a few instances. Here a state has a row over the nodes of its own instance,
which says how many members each node is joined to: a step copies the rows of the parents and adds one at the
neighbours of what is new, and the frontier is where a row is positive. Nothing is sorted and no row is padded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from gflowexplainer.choices import Measure, ParentRule
from gflowexplainer.flow.policy import AdditiveEncoding, AdditivePolicy, Policy
from gflowexplainer.flow.sampling import STOP, Rollouts, refuse_too_many
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import APART, TOO_SMALL, Subgraphs
from gflowexplainer.ops.hashed_random import uniform_numbers
from gflowexplainer.ops.numpy_segments import boundaries, first_places, flat_ranges, ticked_off
from gflowexplainer.settings import Settings

Array = NDArray[Any]
_INSIDE = -(1 << 14)
"""Marks a member in its row: no number of neighbours makes it positive."""
_ENTRIES_AT_ONCE = 1 << 16
"""Frontier nodes that the network looks at together."""
_MANY = 256
"""Rows from which on torch computes them."""


def on_cpu(settings: Settings, policy: Policy, instances: Instances) -> bool:
    """Says whether :class:`CpuRollouts` can grow subgraphs of these instances."""
    return (
        instances.device.type == "cpu"
        and isinstance(policy, AdditivePolicy)
        and settings.measure == Measure.growth
        and settings.parents != ParentRule.sequence
        and instances.other_end is None
        and settings.max_nodes < -_INSIDE
    )


class _Network:
    """The additive policy on one state after the other: sums over members are carried along."""

    def __init__(self, policy: AdditivePolicy, encoding: AdditiveEncoding) -> None:
        candidate, self.member, self.root = (
            part.detach().numpy() for part in (encoding.candidate, encoding.member, encoding.root)
        )
        self.row = None if encoding.row is None else encoding.row.numpy()
        self.width = candidate.shape[1]
        self.by_links, self.by_size = policy.by_links.weight.detach().numpy(), policy.by_size.weight.detach().numpy()
        self.degree = np.maximum(encoding.degree.numpy(), 1).astype(candidate.dtype)
        degree = self.degree
        if self.row is not None:
            degree = np.ones(candidate.shape[0], dtype=candidate.dtype)
            known = (self.row >= 0).nonzero()[0]
            degree[self.row[known]] = self.degree[known]
        # Nearly all frontier nodes are joined to one member: what that means is added once.
        once = np.ones(candidate.shape[0], dtype=candidate.dtype)
        self.joined_once = candidate + self._told(once, np.log1p(once), once / degree)
        self.heads = [_Head(policy.action_head), _Head(policy.stop_head)]

    def _told(self, *columns: Array) -> Array:
        """Returns what the policy makes of numbers of links, their logarithms and their shares, shape ``[N, H]``."""
        told = np.empty((columns[0].size, 3), dtype=self.by_links.dtype)
        told[:, 0], told[:, 1], told[:, 2] = columns
        return told @ self.by_links.T

    def place(self, node: Array) -> Array:
        """Finds nodes, given as flat positions, among those that the encoding knows."""
        return node if self.row is None else self.row.take(node)

    def begin(self, start: Array | None, count: int) -> Array:
        """Returns the sums of states that hold one start node, or nothing, shape ``[U, 2 H]``."""
        if start is None:
            return np.zeros((count, 2 * self.width), dtype=self.member.dtype)
        place = self.place(start)
        return self.root.take(place, axis=0) + self.member.take(place, axis=0)

    def add(self, sums: Array, parent: Array, node: Array) -> Array:
        """Returns the sums of states that have one member more than their parents."""
        return sums.take(parent, axis=0) + self.member.take(self.place(node), axis=0)

    def log_flows(self, sums: Array, size: int, state: Array, node: Array, links: Array) -> tuple[Array, Array]:
        """Returns the log-flow of adding each frontier node ``[F]`` and of stopping ``[U]``, without size bound."""
        whole = sums + self.by_size[size]
        for_action, for_stop = whole[:, : self.width], whole[:, self.width :]
        parts = [
            self._actions(for_action, state[begin:end], node[begin:end], links[begin:end])
            for begin, end in _slices(node.size)
        ]
        action = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return action, self.heads[1](np.maximum(for_stop, 0))

    def _actions(self, for_action: Array, state: Array, node: Array, links: Array) -> Array:
        hidden = self.joined_once.take(self.place(node), axis=0)
        hidden += for_action.take(state, axis=0)
        other = (links != 1).nonzero()[0]
        if other.size:
            count, degree = links.take(other), self.degree.take(node.take(other))
            hidden[other] += self._told(count - 1, np.log1p(count) - np.log1p(1), (count - 1) / degree)
        return self.heads[0](np.maximum(hidden, 0, out=hidden))


class _Head:
    """The two layers behind the first activation; torch computes many rows faster, NumPy begins few sooner."""

    def __init__(self, head: nn.Sequential) -> None:
        first, second = head[1], head[3]
        assert isinstance(first, nn.Linear)
        assert isinstance(second, nn.Linear)
        self.first = first.weight.detach(), first.bias.detach()
        self.second = second.weight.detach(), second.bias.detach()
        self.weight, self.bias = np.ascontiguousarray(self.first[0].numpy().T), self.first[1].numpy()
        self.last, self.shift = self.second[0].numpy()[0], self.second[1].numpy()

    def __call__(self, rows: Array) -> Array:
        """Applies the head to activated rows ``[N, H]``, shape ``[N]``."""
        if rows.shape[0] >= _MANY:
            hidden = functional.linear(torch.from_numpy(np.ascontiguousarray(rows)), *self.first).relu_()
            return functional.linear(hidden, *self.second)[:, 0].numpy()
        hidden = rows @ self.weight
        hidden += self.bias
        np.maximum(hidden, 0, out=hidden)
        return hidden @ self.last + self.shift


def _slices(count: int) -> list[tuple[int, int]]:
    """Cuts frontier entries into parts, one at least."""
    return [(begin, begin + _ENTRIES_AT_ONCE) for begin in range(0, max(count, 1), _ENTRIES_AT_ONCE)]


class CpuRollouts:
    """Grows subgraphs of some instances by the additive policy.

    Args:
        instances: The instances.
        policy: The policy.
        encoding: What it made of them.
        max_nodes: Size bound.
        temperature: Divides the log-flows.
        epsilon: Share of choices that are uniform over all actions instead.
    """

    def __init__(
        self,
        instances: Instances,
        policy: AdditivePolicy,
        encoding: AdditiveEncoding,
        max_nodes: int,
        *,
        temperature: float = 1.0,
        epsilon: float = 0.0,
    ) -> None:
        self.instances, self.network = instances, _Network(policy, encoding)
        self.max_nodes = max(1, min(max_nodes, instances.largest))
        self.min_nodes, self.temperature, self.epsilon = policy.min_nodes, temperature, epsilon
        names = ("ptr", "node_counts", "neighbor_ptr", "degree", "neighbor", "key")
        self.ptr, self.counts, self.neighbor_ptr, self.degree, self.neighbor, self.key = (
            getattr(instances, name).numpy() for name in names
        )

    def grow(self, instance: Tensor, start: Tensor | None, key: Tensor) -> Rollouts:
        """Grows one subgraph for each entry of ``instance`` ``[R]``.

        Args:
            instance: Instance of each.
            start: Start node of each, shape ``[R]``, or ``None`` for states without root.
            key: A random key of each, shape ``[R]``.
        """
        refuse_too_many(instance.numel(), self.max_nodes, False, instance.device)
        numbers = 2 if self.epsilon > 0 else 1
        steps = np.arange(self.max_nodes + 1)[:, None]
        draws = [uniform_numbers(key.numpy(), steps, number) for number in range(numbers)]
        which, begins = instance.numpy(), None if start is None else start.numpy()
        _, first, at = first_places(which if begins is None else begins)
        rooted = begins is not None
        states = self._begin(which[first], None if begins is None else begins[first])
        rollout, record, size = np.arange(which.size), _Record(self.max_nodes), int(rooted)
        while rollout.size:
            state, node, links, ptr = states.frontier(bounded=size == self.max_nodes)
            action, stop = self.network.log_flows(states.sums, size, state, node, links)
            ways = ptr[1:] - ptr[:-1]
            stop = self._bounded(stop, size, ways)
            drawn = [draw[size - rooted].take(rollout) for draw in draws]
            chosen = self._draw(state, ptr, ways, at, drawn, action, stop, size)
            goes_on = (chosen >= 0).nonzero()[0]
            record.add(states, size, (ptr, node, links), at, rollout, chosen, goes_on, (action, stop))
            if not goes_on.size:
                break
            step, at = ticked_off(chosen.take(goes_on), node.size)
            reached, first, group = first_places(states.key.take(state.take(step)) + self.key.take(node.take(step)))
            at, step = group.take(at), step.take(first)
            size += 1
            states = self._step(states, state.take(step), node.take(step), reached, size)
            rollout = rollout.take(goes_on)
        return record.rollouts(self.instances, which.size, rooted)

    def _bounded(self, stop: Array, size: int, ways: Array) -> Array:
        """Puts the size bound on stop flows ``[U]``; an empty state never stops."""
        if size == 0:
            return np.full_like(stop, -np.inf)
        if size >= self.min_nodes:
            return stop
        return stop + np.where(ways > 0, TOO_SMALL, 0.0).astype(stop.dtype)

    def _draw(
        self,
        state: Array,
        ptr: Array,
        ways: Array,
        at: Array,
        draws: list[Array],
        action: Array,
        stop: Array,
        size: int,
    ) -> Array:
        """Picks an action for each rollout; see :func:`~gflowexplainer.flow.sampling.follow_policy`."""
        if not state.size:
            return np.full(at.size, STOP)
        flow, top = action.astype(np.float64), stop.astype(np.float64)
        if self.temperature != 1:
            flow, top = flow / self.temperature, top / self.temperature
        ends, some = top, ways.nonzero()[0]
        best = np.maximum.reduceat(flow, ptr.take(some))
        if some.size == ways.size:
            top = np.maximum(top, best)
        else:
            top = top.copy()
            top[some] = np.maximum(top[some], best)
        line = np.zeros(flow.size + 1)
        np.exp(flow - top.take(state)).cumsum(out=line[1:])
        bounds = line.take(ptr)
        begin = bounds[:-1]
        length = bounds[1:] - begin
        way = draws[0] * (length + np.exp(ends - top)).take(at)
        entry = line[1:].searchsorted(begin.take(at) + way, side="right")
        np.maximum(entry, ptr.take(at), out=entry)
        np.minimum(entry, ptr.take(at + 1) - 1, out=entry)
        entry[way >= length.take(at)] = STOP
        if self.epsilon > 0:
            place = (np.minimum(draws[1] / self.epsilon, 1.0) * (ways + (size > 0)).take(at)).astype(np.int64)
            anything = np.where(place < ways.take(at), ptr.take(at) + place, STOP)
            entry = np.where(draws[1] < self.epsilon, anything, entry)
        if some.size < ways.size:
            entry[ways.take(at) == 0] = STOP
        return entry

    def _begin(self, instance: Array, start: Array | None) -> _Rows:
        """Makes the first states."""
        key = self.instances.own_key.numpy()[instance] + instance * APART
        empty = _Rows.empty(instance, self.counts[instance], self.ptr[instance], key, self.max_nodes)
        if start is None:
            empty.sums = self.network.begin(None, instance.size)
            return empty
        rooted = self._enter(empty, np.arange(instance.size), start, key + self.key[start], 1)
        rooted.sums = self.network.begin(start, instance.size)
        return rooted

    def _step(self, states: _Rows, parent: Array, node: Array, key: Array, size: int) -> _Rows:
        """Adds a node to the row of its parent."""
        grown = self._enter(states, parent, node, key, size)
        grown.sums = self.network.add(states.sums, parent, node)
        return grown

    def _enter(self, states: _Rows, parent: Array, node: Array, key: Array, size: int) -> _Rows:
        grown = states.take(parent, key)
        grown.members[:, size - 1] = node
        grown.table[grown.shift + node] = _INSIDE
        owner, entry = flat_ranges(self.neighbor_ptr.take(node), self.degree.take(node))
        # Neighbours of one node differ, so no place is counted twice.
        grown.table[self.neighbor.take(entry) + grown.shift.take(owner)] += 1
        return grown


class _Rows:
    """``U`` states: members, and for every node of the instance how many members it is joined to.

    Attributes:
        instance, key: Instance and hash of each state, shape ``[U]``.
        members: Members in order of insertion, shape ``[U, K]``.
        table: The rows one behind the other; :data:`_INSIDE` and more below zero at members.
        owner: State of each place in ``table``.
        first, shift: Where each row begins, and what is added to a flat position to find it there, shape ``[U]``.
        sums: What the network makes of the members, shape ``[U, 2 H]``.
    """

    sums: Array

    def __init__(
        self, instance: Array, counts: Array, base: Array, key: Array, members: Array, table: Array, owner: Array
    ) -> None:
        self.instance, self.counts, self.base, self.key = instance, counts, base, key
        self.members, self.table, self.owner = members, table, owner
        self.first = counts.cumsum() - counts
        self.shift = self.first - base

    @classmethod
    def empty(cls, instance: Array, counts: Array, base: Array, key: Array, max_nodes: int) -> _Rows:
        """Makes states without members."""
        members = np.full((instance.size, max_nodes), -1)
        owner = np.repeat(np.arange(instance.size), counts)
        return cls(instance, counts, base, key, members, np.zeros(owner.size, dtype=np.int16), owner)

    def take(self, parent: Array, key: Array) -> _Rows:
        """Copies the rows ``parent``, under new keys."""
        counts = self.counts.take(parent)
        owner, place = flat_ranges(self.first.take(parent), counts)
        rows = self.instance.take(parent), counts, self.base.take(parent), key
        return _Rows(*rows, self.members.take(parent, axis=0), self.table.take(place), owner)

    def frontier(self, *, bounded: bool) -> tuple[Array, Array, Array, Array]:
        """Lists what may be added: state, node and links of each entry, and where those of each state begin.

        Args:
            bounded: Whether the size bound is reached, so that nothing can be added.
        """
        if bounded:
            place = np.zeros(0, dtype=np.int64)
        elif self.members[0, 0] < 0:
            place = np.arange(self.table.size)
        else:
            place = (self.table > 0).nonzero()[0]
        state = self.owner.take(place)
        ptr = boundaries(np.bincount(state, minlength=self.instance.size))
        return state, place - self.shift.take(state), self.table.take(place).astype(np.int64), ptr


class _Record:
    """Puts together what rollouts did, one depth after the other."""

    def __init__(self, max_nodes: int) -> None:
        self.max_nodes = max_nodes
        self.columns: dict[str, list[Array]] = {}
        self.visits = self.states = self.entries = 0

    def add(
        self,
        states: _Rows,
        size: int,
        frontier: tuple[Array, Array, Array],
        at: Array,
        rollout: Array,
        chosen: Array,
        goes_on: Array,
        flows: tuple[Array, Array],
    ) -> None:
        """Remembers one step of all rollouts that are still growing."""
        ptr, node, links = frontier
        successor = np.full(rollout.size, -1)
        successor[goes_on] = np.arange(goes_on.size) + (self.visits + rollout.size)
        found = {
            "instance": states.instance,
            "members": states.members,
            "size": np.full(states.instance.size, size),
            "ptr": ptr[1:] + self.entries,
            "frontier": node,
            "links": links,
            "state": at + self.states,
            "rollout": rollout,
            "chosen": np.where(chosen < 0, STOP, chosen + self.entries),
            "successor": successor,
            "action": flows[0],
            "stop": flows[1],
        }
        for name, column in found.items():
            self.columns.setdefault(name, []).append(column)
        self.visits += rollout.size
        self.states += states.instance.size
        self.entries += node.size

    def rollouts(self, instances: Instances, count: int, rooted: bool) -> Rollouts:
        """Makes the rollouts of what was remembered."""
        whole = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        ends = (whole["successor"] < 0).nonzero()[0]
        last = np.empty(count, dtype=np.int64)
        last[whole["rollout"][ends]] = ends
        whole["ptr"] = np.concatenate([np.zeros(1, dtype=np.int64), whole["ptr"]])
        told = {name: torch.from_numpy(column) for name, column in whole.items()}
        states = States(
            instances=instances,
            subgraphs=Subgraphs(told["instance"], told["members"]),
            size=told["size"],
            rooted=rooted,
            inner_degree=None,
            cut=None,
            is_cut=None,
            frontier_ptr=told["ptr"],
            frontier=told["frontier"],
            links=told["links"],
        )
        return Rollouts(
            states=states,
            state=told["state"],
            rollout=told["rollout"],
            chosen=told["chosen"],
            successor=told["successor"],
            last=torch.from_numpy(last),
            flows=(told["action"], told["stop"]),
        )
