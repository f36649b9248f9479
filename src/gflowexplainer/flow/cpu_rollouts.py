"""Rollouts of the additive policy on a CPU: NumPy keeps the books, torch evaluates the network.

What :func:`~gflowexplainer.flow.sampling.roll_out` does with :func:`~gflowexplainer.flow.sampling.follow_policy`, with
the same random numbers, so that the same subgraphs come out. There every step is some hundred calls of torch, each of
which takes longer to begin than to work on a few instances. Here the states are rows of numbers
(:mod:`~gflowexplainer.flow.cpu_rows`), and what rollouts did is put together once they have all ended.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.choices import Measure, ParentRule
from gflowexplainer.flow.cpu_policy import CpuPolicy
from gflowexplainer.flow.cpu_rows import INSIDE, Frontier, Rows
from gflowexplainer.flow.even_draws import even_numbers
from gflowexplainer.flow.policy import AdditiveEncoding, AdditivePolicy, Policy
from gflowexplainer.flow.sampling import STOP, Rollouts, refuse_too_many
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import APART, TOO_SMALL, Subgraphs
from gflowexplainer.ops.hashed_random import uniform_numbers
from gflowexplainer.ops.numpy_segments import boundaries, first_places, ticked_off
from gflowexplainer.settings import Settings

Array = NDArray[Any]
_NONE, _ONE = np.zeros((), dtype=np.int64), np.ones((), dtype=np.int64)
"""NumPy takes an array without axes sooner than a number."""


def on_cpu(settings: Settings, policy: Policy, instances: Instances) -> bool:
    """Says whether :class:`CpuRollouts` can grow subgraphs of these instances."""
    return (
        instances.device.type == "cpu"
        and isinstance(policy, AdditivePolicy)
        and settings.measure == Measure.growth
        and settings.parents != ParentRule.sequence
        and instances.other_end is None
        and settings.max_nodes < -INSIDE
    )


class CpuRollouts:
    """Grows subgraphs of some instances by the additive policy.

    Args:
        instances: The instances.
        policy: The policy.
        encoding: What it made of them.
        max_nodes: Size bound.
        temperature: Divides the log-flows.
        epsilon: Share of choices that are uniform over all actions instead.
        evenly: Whether rollouts at the same state share its actions out (:mod:`~gflowexplainer.flow.even_draws`).
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
        evenly: bool = False,
    ) -> None:
        self.instances, self.policy = instances, CpuPolicy(policy, encoding)
        self.max_nodes = max(1, min(max_nodes, instances.largest))
        self.min_nodes, self.temperature, self.epsilon = policy.min_nodes, temperature, epsilon
        self.evenly = evenly
        self.key = instances.key.numpy()

    def grow(self, instance: Tensor, start: Tensor | None, key: Tensor) -> Rollouts:
        """Grows one subgraph for each entry of ``instance`` ``[R]``.

        Args:
            instance: Instance of each.
            start: Start node of each, shape ``[R]``, or ``None`` for states without root.
            key: A random key of each, shape ``[R]``.
        """
        refuse_too_many(instance.numel(), self.max_nodes, False, instance.device)
        numbers = 2 if self.epsilon > 0 else 1
        chances = [uniform_numbers(key.numpy(), np.arange(self.max_nodes + 1)[:, None], n) for n in range(numbers)]
        which, begins = instance.numpy(), None if start is None else start.numpy()
        first, at = self._first_states(which if begins is None else begins)
        states = self._begin(which[first], None if begins is None else begins[first])
        rollout, steps = np.arange(which.size), list[_Step]()
        while True:
            frontier = states.frontier(bounded=states.size == self.max_nodes)
            state, node, links, ptr = frontier
            action, stop = self.policy.log_flows(states.sums, states.size, state, node, links)
            ways = ptr[1:] - ptr[:-1]
            stop = self._bounded(stop, states.size, ways)
            chance = [chances[n][len(steps)][rollout] for n in range(numbers)]
            if self.evenly:
                chance[0] = even_numbers(at, chance[0], ways.size)
            chosen = self._draw(frontier, ways, at, chance, action, stop, states.size)
            steps.append(_Step(states.instance, states.members, ways, node, links, at, rollout, chosen, action, stop))
            goes_on = (chosen >= _NONE).nonzero()[0]
            if not goes_on.size:
                return _put_together(steps, self.instances, which.size, rooted=begins is not None)
            taken, at = ticked_off(chosen[goes_on], node.size)
            parent, added = state[taken], node[taken]
            reached, first, group = first_places(states.key[parent] + self.key[added])
            at, parent, added = group[at], parent[first], added[first]
            sums = self.policy.add(states.sums, parent, added)
            states = states.grown(parent, added, reached)
            states.sums, rollout = sums, rollout[goes_on]

    def _first_states(self, place: Array) -> tuple[Array, Array]:
        """Finds which rollouts ``[R]`` come first to each place ``[R]`` where they begin, and the state of each."""
        if len(self.instances) == 1 and (place == place[:1]).all():
            return np.arange(min(place.size, 1)), np.zeros(place.size, dtype=np.int64)
        _, first, at = first_places(place)
        return first, at

    def _begin(self, instance: Array, start: Array | None) -> Rows:
        """Makes the first states, of one start node each or of nothing."""
        key = self.instances.own_key.numpy().take(instance) + instance * APART
        states = Rows.empty(self.instances, instance, key, self.max_nodes)
        if start is not None:
            states = states.grown(np.arange(instance.size), start, key + self.key.take(start))
        states.sums = self.policy.begin(start, instance.size)
        return states

    def _bounded(self, stop: Array, size: int, ways: Array) -> Array:
        """Puts the size bound on stop flows ``[U]``; an empty state never stops."""
        if size == 0:
            return np.full_like(stop, -np.inf)
        if size >= self.min_nodes:
            return stop
        return stop + np.where(ways > 0, TOO_SMALL, 0.0).astype(stop.dtype)

    def _draw(
        self, frontier: Frontier, ways: Array, at: Array, chance: list[Array], action: Array, stop: Array, size: int
    ) -> Array:
        """Picks an action for each rollout; see :func:`~gflowexplainer.flow.sampling.follow_policy`."""
        state, _, _, ptr = frontier
        if not state.size:
            return np.full(at.size, STOP)
        flow, ends = action.astype(np.float64), stop.astype(np.float64)
        if self.temperature != 1:
            flow, ends = flow / self.temperature, ends / self.temperature
        some = ways.nonzero()[0]
        if some.size == ways.size:
            top = np.maximum(ends, np.maximum.reduceat(flow, ptr[:-1]))
        else:
            top = ends.copy()
            top[some] = np.maximum(top[some], np.maximum.reduceat(flow, ptr.take(some)))
        flow -= top[state]
        line = np.zeros(flow.size + 1)
        ahead = line[1:]
        np.exp(flow, out=flow).cumsum(out=ahead)
        bounds = line[ptr]
        begin = bounds[:-1]
        length = bounds[1:] - begin
        way = chance[0] * (length + np.exp(ends - top))[at]
        entry = ahead.searchsorted(begin[at] + way, side="right")
        # What is rounded up may lie behind the last entry of its state.
        np.minimum(entry, (ptr[1:] - _ONE)[at], out=entry)
        entry[way >= length[at]] = STOP
        if self.epsilon > 0:
            place = (np.minimum(chance[1] / self.epsilon, 1.0) * (ways + (size > 0)).take(at)).astype(np.int64)
            anything = np.where(place < ways.take(at), ptr.take(at) + place, STOP)
            entry = np.where(chance[1] < self.epsilon, anything, entry)
        if some.size < ways.size:
            entry[ways.take(at) == 0] = STOP
        return entry


class _Step(NamedTuple):
    """One step of all rollouts that are still growing: ``U`` states with ``F`` frontier entries, ``V`` visits.

    Attributes:
        instance, members: Of the states, shapes ``[U]`` and ``[U, K]``.
        ways, node, links: Their frontier: how many each has ``[U]``, which ``[F]``, and how often joined ``[F]``.
        at, rollout: State and rollout of each visit, shape ``[V]``.
        chosen: The entry that each visit chose, or :data:`STOP`, shape ``[V]``.
        action, stop: Log-flows, shapes ``[F]`` and ``[U]``.
    """

    instance: Array
    members: Array
    ways: Array
    node: Array
    links: Array
    at: Array
    rollout: Array
    chosen: Array
    action: Array
    stop: Array


def _put_together(steps: list[_Step], instances: Instances, count: int, *, rooted: bool) -> Rollouts:
    """Makes the ``count`` rollouts of their steps."""
    visits, states, entries = (
        np.array([getattr(step, name).shape[0] for step in steps]) for name in ("at", "instance", "node")
    )
    before = {name: (counts.cumsum() - counts) for name, counts in (("states", states), ("entries", entries))}
    whole = {name: np.concatenate(parts) for name, parts in zip(_Step._fields, zip(*steps, strict=True), strict=True)}
    chosen, rollout = whole["chosen"], whole["rollout"]
    goes_on = chosen >= 0
    # Whoever goes on is there in the next step, in the same order.
    successor = np.full(chosen.size, -1)
    successor[goes_on] = np.arange(visits[0], chosen.size)
    ends = (~goes_on).nonzero()[0]
    last = np.empty(count, dtype=np.int64)
    last[rollout.take(ends)] = ends
    flat = {
        "instance": whole["instance"],
        "members": whole["members"],
        "size": (np.arange(len(steps)) + int(rooted)).repeat(states),
        "ptr": boundaries(whole["ways"]),
        "node": whole["node"],
        "links": whole["links"],
        "state": whole["at"] + before["states"].repeat(visits),
        "rollout": rollout,
        "chosen": np.where(goes_on, chosen + before["entries"].repeat(visits), STOP),
        "successor": successor,
        "last": last,
        "action": whole["action"],
        "stop": whole["stop"],
    }
    told = {name: torch.from_numpy(column) for name, column in flat.items()}
    return Rollouts(
        states=States(
            instances=instances,
            subgraphs=Subgraphs(told["instance"], told["members"]),
            size=told["size"],
            rooted=rooted,
            inner_degree=None,
            cut=None,
            is_cut=None,
            frontier_ptr=told["ptr"],
            frontier=told["node"],
            links=told["links"],
        ),
        state=told["state"],
        rollout=told["rollout"],
        chosen=told["chosen"],
        successor=told["successor"],
        last=told["last"],
        flows=(told["action"], told["stop"]),
    )
