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
from torch import Tensor

from gflowexplainer.choices import Measure, ParentRule
from gflowexplainer.flow.policy import AdditiveEncoding, AdditivePolicy, Policy
from gflowexplainer.flow.sampling import STOP, Rollouts, refuse_too_many
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import APART, TOO_SMALL, Subgraphs
from gflowexplainer.ops.hashed_random import uniform_numbers
from gflowexplainer.ops.numpy_segments import first_places, flat_ranges, ticked_off
from gflowexplainer.settings import Settings

Array = NDArray[Any]
_INSIDE = -(1 << 14)
"""Marks a member in its row: no number of neighbours makes it positive."""
_ENTRIES_AT_ONCE = 1 << 16
"""Frontier nodes that the network looks at together."""


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
        self.policy = policy
        self.candidate, self.member, self.root = (
            part.detach() for part in (encoding.candidate, encoding.member, encoding.root)
        )
        self.row = None if encoding.row is None else encoding.row.numpy()
        self.degree = np.maximum(encoding.degree.numpy(), 1)
        self.links = policy.by_links.weight.detach().t()
        self.width = self.candidate.size(1)
        self.heads = [
            [(layer.weight.detach().t(), layer.bias.detach()) for layer in (head[1], head[3])]
            for head in (policy.action_head, policy.stop_head)
        ]
        self.by_size = policy.by_size.weight.detach()

    def place(self, node: Array) -> Tensor:
        """Finds nodes, given as flat positions, among those that the encoding knows."""
        return torch.from_numpy(node if self.row is None else self.row[node])

    def begin(self, start: Array | None, count: int) -> Tensor:
        """Returns the sums of states that hold one start node, or nothing, shape ``[U, 2 H]``."""
        if start is None:
            return self.member.new_zeros(count, 2 * self.width)
        place = self.place(start)
        return self.root.index_select(0, place) + self.member.index_select(0, place)

    def add(self, sums: Tensor, parent: Array, node: Array) -> Tensor:
        """Returns the sums of states that have one member more than their parents."""
        return sums.index_select(0, torch.from_numpy(parent)) + self.member.index_select(0, self.place(node))

    def log_flows(self, sums: Tensor, size: int, state: Array, node: Array, links: Array) -> tuple[Tensor, Tensor]:
        """Returns the log-flow of adding each frontier node ``[F]`` and of stopping ``[U]``, without size bound."""
        whole = sums + self.by_size[size]
        for_action, for_stop = whole[:, : self.width], whole[:, self.width :]
        parts = [
            self._actions(for_action, state[begin:end], node[begin:end], links[begin:end])
            for begin, end in _slices(node.size)
        ]
        action = parts[0] if len(parts) == 1 else torch.cat(parts)
        return action, self._head(1, for_stop.clone())

    def _actions(self, for_action: Tensor, state: Array, node: Array, links: Array) -> Tensor:
        count = links.astype(np.float64)
        told = torch.from_numpy(np.stack([count, np.log1p(count), count / self.degree[node]], axis=1))
        hidden = self.candidate.index_select(0, self.place(node))
        hidden += for_action.index_select(0, torch.from_numpy(state))
        hidden.addmm_(told.to(hidden.dtype), self.links)
        return self._head(0, hidden)

    def _head(self, which: int, hidden: Tensor) -> Tensor:
        """Applies one of the two heads to rows ``[N, H]``, which are written to."""
        (first, one), (second, other) = self.heads[which]
        return torch.addmm(other, torch.addmm(one, hidden.relu_(), first).relu_(), second)[:, 0]


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
            grows = np.diff(ptr) > 0
            stop = self._bounded(stop, size, grows)
            chosen = self._draw(state, ptr, at, [draw[size - rooted, rollout] for draw in draws], action, stop, size)
            chosen[~grows[at]] = STOP
            goes_on = np.flatnonzero(chosen >= 0)
            record.add(states, size, (ptr, node, links), at, rollout, chosen, goes_on, (action, stop))
            if not goes_on.size:
                break
            step, at = ticked_off(chosen[goes_on], node.size)
            reached, first, group = first_places(states.key[state[step]] + self.key[node[step]])
            at, step = group[at], step[first]
            size += 1
            states = self._step(states, state[step], node[step], reached, size)
            rollout = rollout[goes_on]
        return record.rollouts(self.instances, which.size, rooted)

    def _bounded(self, stop: Tensor, size: int, grows: Array) -> Tensor:
        """Puts the size bound on stop flows ``[U]``; an empty state never stops."""
        if size == 0:
            return torch.full_like(stop, -torch.inf)
        if size >= self.min_nodes:
            return stop
        return stop + torch.from_numpy(np.where(grows, TOO_SMALL, 0.0)).to(stop.dtype)

    def _draw(
        self, state: Array, ptr: Array, at: Array, draws: list[Array], action: Tensor, stop: Tensor, size: int
    ) -> Array:
        """Picks an action for each rollout; see :func:`~gflowexplainer.flow.sampling.follow_policy`."""
        counts = np.diff(ptr)
        if not state.size:
            return np.full(at.size, STOP)
        flow, ends = action.double().numpy() / self.temperature, stop.double().numpy() / self.temperature
        some = np.flatnonzero(counts)
        top = ends.copy()
        top[some] = np.maximum(top[some], np.maximum.reduceat(flow, ptr[some]))
        line = np.zeros(flow.size + 1)
        np.cumsum(np.exp(flow - top[state]), out=line[1:])
        begin = line[ptr[:-1]]
        length = line[ptr[1:]] - begin
        way = draws[0] * (length + np.exp(ends - top))[at]
        entry = np.searchsorted(line[1:], begin[at] + way, side="right")
        entry = np.minimum(np.maximum(entry, ptr[at]), ptr[at + 1] - 1)
        entry[way >= length[at]] = STOP
        if self.epsilon > 0:
            ways = counts + (size > 0)
            place = (np.minimum(draws[1] / self.epsilon, 1.0) * ways[at]).astype(np.int64)
            anything = np.where(place < counts[at], ptr[at] + place, STOP)
            entry = np.where(draws[1] < self.epsilon, anything, entry)
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
        owner, entry = flat_ranges(self.neighbor_ptr[node], self.degree[node])
        # Neighbours of one node differ, so no place is counted twice.
        grown.table[self.neighbor[entry] + grown.shift[owner]] += 1
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

    sums: Tensor

    def __init__(
        self, instance: Array, counts: Array, base: Array, key: Array, members: Array, table: Array, owner: Array
    ) -> None:
        self.instance, self.counts, self.base, self.key = instance, counts, base, key
        self.members, self.table, self.owner = members, table, owner
        self.first = np.cumsum(counts) - counts
        self.shift = self.first - base

    @classmethod
    def empty(cls, instance: Array, counts: Array, base: Array, key: Array, max_nodes: int) -> _Rows:
        """Makes states without members."""
        members = np.full((instance.size, max_nodes), -1)
        owner = np.repeat(np.arange(instance.size), counts)
        return cls(instance, counts, base, key, members, np.zeros(owner.size, dtype=np.int16), owner)

    def take(self, parent: Array, key: Array) -> _Rows:
        """Copies the rows ``parent``, under new keys."""
        counts = self.counts[parent]
        owner, place = flat_ranges(self.first[parent], counts)
        rows = self.instance[parent], counts, self.base[parent], key
        return _Rows(*rows, self.members[parent], self.table[place], owner)

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
            place = np.flatnonzero(self.table > 0)
        state = self.owner[place]
        ptr = np.zeros(self.instance.size + 1, dtype=np.int64)
        np.cumsum(np.bincount(state, minlength=self.instance.size), out=ptr[1:])
        return state, place - self.shift[state], self.table[place].astype(np.int64), ptr


class _Record:
    """Puts together what rollouts did, one depth after the other."""

    def __init__(self, max_nodes: int) -> None:
        self.max_nodes = max_nodes
        self.columns: dict[str, list[Array]] = {}
        self.flows: list[tuple[Tensor, Tensor]] = []
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
        flows: tuple[Tensor, Tensor],
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
        }
        for name, column in found.items():
            self.columns.setdefault(name, []).append(column)
        self.flows.append(flows)
        self.visits += rollout.size
        self.states += states.instance.size
        self.entries += node.size

    def rollouts(self, instances: Instances, count: int, rooted: bool) -> Rollouts:
        """Makes the rollouts of what was remembered."""
        whole = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        ends = np.flatnonzero(whole["successor"] < 0)
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
        flows = tuple(torch.cat(parts) for parts in zip(*self.flows, strict=True))
        return Rollouts(
            states, told["state"], told["rollout"], told["chosen"], told["successor"], torch.from_numpy(last), flows
        )
