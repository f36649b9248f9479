"""Rollouts of the additive policy on a CPU: NumPy keeps the books, torch evaluates the network.

What :func:`~gflowexplainer.flow.sampling.roll_out` does with :func:`~gflowexplainer.flow.sampling.follow_policy`, with
the same random numbers, so that the same subgraphs come out. There every step is some hundred calls of torch, each of
which takes longer to begin than to work on a few instances. Here the states are rows of numbers
(:mod:`~gflowexplainer.flow.cpu_rows`), and what rollouts did is put together once they have all ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gflowexplainer.choices import Measure, ParentRule
from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.cpu_policy import CpuEncoding, CpuPolicy
from gflowexplainer.flow.cpu_record import CpuRecord, Step
from gflowexplainer.flow.cpu_rows import INSIDE, Frontier, Rows
from gflowexplainer.flow.even_draws import even_numbers
from gflowexplainer.flow.policy import Policy
from gflowexplainer.flow.sampling import STOP, refuse_too_many
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import APART, TOO_SMALL
from gflowexplainer.ops.hashed_random import uniform_numbers
from gflowexplainer.ops.numpy_segments import Groups, counted, grouped
from gflowexplainer.settings import Settings

Array = NDArray[Any]
_NONE, _ONE = np.zeros((), dtype=np.int64), np.ones((), dtype=np.int64)
"""NumPy takes an array without axes sooner than a number."""


def grows_on_cpu(settings: Settings, policy: Policy, instances: Instances) -> bool:
    """Returns whether :class:`CpuRollouts` can grow subgraphs of these instances, where they lie on a CPU."""
    return (
        isinstance(policy, AdditivePolicy)
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
        encoding: CpuEncoding,
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
        self.key = instances.array("key")

    def grow(self, instance: Array, start: Array | None, key: Array) -> CpuRecord:
        """Grows one subgraph for each entry of ``instance`` ``[R]``.

        Args:
            instance: Instance of each.
            start: Start node of each, shape ``[R]``, or ``None`` for states without root.
            key: A random key of each, shape ``[R]``.
        """
        refuse_too_many(instance.size, self.max_nodes, False, self.instances.device)
        numbers = range(2 if self.epsilon > 0 else 1)
        chances = [uniform_numbers(key, counted(self.max_nodes + 1)[:, None], n) for n in numbers]
        met = self._first_states(instance if start is None else start)
        first = met.order[met.ptr[:-1]]
        states = self._begin(instance[first], None if start is None else start[first])
        rollout, steps, policy = np.arange(instance.size), list[Step](), self.policy
        while True:
            frontier, at = states.frontier(bounded=states.size == self.max_nodes), met.group
            state, node, links, _, ways = frontier
            action, stop = policy.log_flows(states.sums, states.size, state, node, links)
            stop = self._bounded(stop, states.size, ways)
            chance = [chances[n][len(steps)][rollout] for n in numbers]
            if self.evenly:
                chance[0] = even_numbers(met, chance[0])
            chosen = self._draw(frontier, at, chance, action, stop, states.size)
            steps.append(Step(states.instance, states.members, ways, node, links, at, rollout, chosen, action, stop))
            goes_on = (chosen >= _NONE).nonzero()[0]
            if not goes_on.size:
                return CpuRecord(steps, self.instances, instance.size, rooted=start is not None)
            taken = chosen[goes_on]
            met = grouped((states.key[state] + self.key[node])[taken])
            # Of several steps to the same state, the first one is taken.
            step = np.minimum.reduceat(taken[met.order], met.ptr[:-1])
            parent, added = state[step], node[step]
            sums = policy.add(states.sums, parent, added)
            states = states.grown(parent, added, met.keys)
            states.sums, rollout = sums, rollout[goes_on]

    def _first_states(self, place: Array) -> Groups:
        """Finds which rollouts begin at the same of the places ``[R]``."""
        if len(self.instances) == 1 and place.size and not np.count_nonzero(place != place[:1]):
            return Groups(place[:1], counted(place.size), np.array((0, place.size)), np.zeros_like(place))
        return grouped(place)

    def _begin(self, instance: Array, start: Array | None) -> Rows:
        """Makes the first states, of one start node each or of nothing."""
        key = self.instances.array("own_key")[instance] + instance * APART
        states = Rows.empty(self.instances, instance, key, self.max_nodes)
        if start is not None:
            states = states.grown(np.arange(instance.size), start, key + self.key[start])
        states.sums = self.policy.begin(start, instance.size)
        return states

    def _bounded(self, stop: Array, size: int, ways: Array) -> Array:
        """Puts the size bound on stop flows ``[U]``; an empty state never stops."""
        if size == 0:
            return np.full_like(stop, -np.inf)
        if size >= self.min_nodes:
            return stop
        return stop + np.where(ways > 0, TOO_SMALL, 0.0).astype(stop.dtype)

    def _draw(self, frontier: Frontier, at: Array, chance: list[Array], action: Array, stop: Array, size: int) -> Array:
        """Picks an action for each rollout; see :func:`~gflowexplainer.flow.sampling.follow_policy`."""
        state, _, _, ptr, ways = frontier
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
        np.add.accumulate(np.exp(flow, out=flow), out=ahead)
        bounds = line[ptr]
        begin = bounds[:-1]
        length = bounds[1:] - begin
        ends -= top
        way = (length + np.exp(ends, out=ends))[at]
        way *= chance[0]
        entry = ahead.searchsorted(begin[at] + way, side="right")
        # What is rounded up may lie behind the last entry of its state.
        np.minimum(entry, (ptr[1:] - _ONE)[at], out=entry)
        np.putmask(entry, way >= length[at], STOP)
        if self.epsilon > 0:
            place = (np.minimum(chance[1] / self.epsilon, 1.0) * (ways + (size > 0)).take(at)).astype(np.int64)
            anything = np.where(place < ways.take(at), ptr.take(at) + place, STOP)
            entry = np.where(chance[1] < self.epsilon, anything, entry)
        if some.size < ways.size:
            entry[ways.take(at) == 0] = STOP
        return entry
