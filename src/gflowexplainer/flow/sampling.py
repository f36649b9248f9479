"""Rollouts: grows subgraphs for all instances of a batch at once, under any rule of choice.

Rollouts of one instance meet: all begin at the same state, and the same nodes may join in another order. A state that
several rollouts are at is held, and looked at by the policy, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.flow.even_draws import even_draws
from gflowexplainer.flow.policy import Policy
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, place_keys
from gflowexplainer.ops.hashed_random import combine, combine_integers, combine_numbers, uniform
from gflowexplainer.ops.memory import refuse_beyond_memory
from gflowexplainer.ops.numpy_segments import boundaries, counted, numbered
from gflowexplainer.ops.segments import pointers, segment_argmax, segment_max
from gflowexplainer.ops.sorting import first_of_each, unique_groups

STOP = -1


class Action(NamedTuple):
    """What ``B`` rollouts do next.

    Attributes:
        entry: Position in ``states.frontier`` of the node that each gains, or :data:`STOP`, shape ``[B]``.
        flows: The log-flows of adding each frontier node ``[F]`` and of stopping ``[U]`` that it was based on, if any.
    """

    entry: Tensor
    flows: tuple[Tensor, Tensor] | None = None


Chooser = Callable[[States, Tensor, Tensor], Action]
"""Maps ``U`` states, which of them ``B`` rollouts are at, ``[B]``, and two numbers in (0, 1) for each, ``[B, 2]``."""


@dataclass(frozen=True)
class Rollouts:
    """What ``R`` rollouts did: ``V`` visits, by depth and then by rollout, to ``U`` different states.

    Attributes:
        states: The visited states, by depth.
        state: The state of each visit, shape ``[V]``.
        rollout: Rollout of each visit, shape ``[V]``.
        chosen: Position in ``states.frontier`` of the node added next, :data:`STOP` at the end, shape ``[V]``.
        successor: The next visit of the rollout, ``-1`` at the end, shape ``[V]``.
        last: The last visit of each rollout, shape ``[R]``.
        flows: The log-flows of ``states`` that the rollouts followed, ``[F]`` and ``[U]``, if they followed any.
    """

    states: States
    state: Tensor
    rollout: Tensor
    chosen: Tensor
    successor: Tensor
    last: Tensor
    flows: tuple[Tensor, Tensor] | None

    @property
    def subgraphs(self) -> Subgraphs:
        """The subgraph that each rollout ended in, ``R`` of them."""
        return self.states.subgraphs[self.state[self.last]]

    def to(self, instances: Instances) -> Rollouts:
        """Returns the same rollouts on instances that lie on another device, without the flows they followed."""
        names = ("state", "rollout", "chosen", "successor", "last")
        moved = {name: getattr(self, name).to(instances.device) for name in names}
        return replace(self, states=self.states.to(instances), flows=None, **moved)


def roll_out(
    instances: Instances,
    instance: Tensor,
    start: Tensor | None,
    max_nodes: int,
    choose: Chooser,
    key: Tensor | None = None,
    *,
    cuts: bool = True,
    ordered: bool = False,
) -> Rollouts:
    """Grows one subgraph for each entry of ``instance`` until ``choose`` stops it or nothing can be added.

    Args:
        instances: The instances.
        instance: Instance of each rollout, shape ``[R]``.
        start: Start node of each, shape ``[R]``, or ``None`` for states without root.
        max_nodes: Size bound.
        choose: The rule of choice.
        key: A random key of each rollout, shape ``[R]``; see :func:`rollout_keys`.
        cuts: Whether the states are to know their cut vertices.
        ordered: Whether the same nodes in another order are another state. If not, the members of a state stand in the
            order of one of the rollouts that came to it.
    """
    if max_nodes > instances.largest > 0:
        max_nodes = instances.largest
    refuse_too_many(instance.numel(), max_nodes, cuts, instance.device)
    _, first, at = first_of_each(instance if start is None else start)
    states = States.initial(instances, instance[first], None if start is None else start[first], max_nodes, cuts=cuts)
    rollout = torch.arange(instance.numel(), device=instance.device)
    key = rollout_keys(instances, instance) if key is None else key
    # All random numbers of all steps, in (0, 1), at once: shape [K + 1, R, 2].
    steps = torch.arange(max_nodes + 1, device=key.device)[:, None, None]
    draws = uniform(key[:, None], steps, torch.arange(2, device=key.device))
    parts: list[States] = []
    flows: list[tuple[Tensor, Tensor]] = []
    places, rollouts, choices = list[Tensor](), list[Tensor](), list[Tensor]()
    while rollout.numel():
        choice = choose(states, at, draws[len(parts)][rollout])
        chosen = torch.where(states.can_grow[at], choice.entry, STOP)
        parts.append(states)
        places.append(at)
        rollouts.append(rollout)
        choices.append(chosen)
        if choice.flows is not None:
            flows.append(choice.flows)
        goes_on = torch.nonzero(chosen != STOP).flatten()
        states, at = _step(states, chosen[goes_on], ordered)
        rollout = rollout[goes_on]
    # Whoever goes on is there in the next step, in the same order.
    chosen, visited, visits = torch.cat(choices), torch.cat(rollouts), [place.numel() for place in places]
    goes_on = torch.nonzero(chosen != STOP).flatten()
    successor = torch.full_like(chosen, -1)
    successor[goes_on] = torch.arange(visits[0], chosen.numel(), device=chosen.device)
    entries = chosen + _before([part.frontier.numel() for part in parts], visits, chosen.device)
    last = torch.empty(instance.numel(), dtype=torch.long, device=instance.device)
    ends = torch.nonzero(successor == -1).flatten()
    last[visited[ends]] = ends
    return Rollouts(
        states=States.cat(parts),
        state=torch.cat(places) + _before([len(part) for part in parts], visits, chosen.device),
        rollout=visited,
        chosen=torch.where(chosen == STOP, STOP, entries),
        successor=successor,
        last=last,
        flows=(torch.cat([a for a, _ in flows]), torch.cat([s for _, s in flows])) if flows else None,
    )


def _before(counts: list[int], visits: list[int], device: torch.device) -> Tensor:
    """Returns, for all ``visits`` of each step, how many there are of what all steps before it have ``counts`` of."""
    return torch.from_numpy(boundaries(np.array(counts))[:-1].repeat(visits)).to(device)


def refuse_too_many(rollouts: int, max_nodes: int, cuts: bool, device: torch.device) -> None:
    """Refuses rollouts whose states would not fit into memory, before any of them is made."""
    # Members and inner degrees of each state, two numbers a slot, and a byte or two for each pair of slots.
    each = max_nodes * (16 + (max_nodes * (1 if max_nodes <= 127 else 2) if cuts else 0))
    refuse_beyond_memory(
        rollouts * max_nodes * each,
        device,
        f"Growing {rollouts} subgraphs of up to {max_nodes} nodes",
        "Lower 'max_nodes', 'rollouts', 'batch_size' or 'num_samples'.",
    )


def _step(states: States, chosen: Tensor, ordered: bool) -> tuple[States, Tensor]:
    """Takes the steps ``chosen`` ``[B]``, each different one once; gives the next states and the state of each step."""
    if ordered:
        step, which = unique_groups(chosen)
        return states.step(step), which
    reached = place_keys(states.instances, states.subgraphs)[states.frontier_state[chosen]]
    found, which = unique_groups(reached + states.instances.key[states.frontier[chosen]])
    # Of several steps to the same state, the first one is taken.
    step = torch.full_like(found, states.frontier.numel()).scatter_reduce_(0, which, chosen, "amin")
    return states.step(step), which


def rollout_keys(instances: Instances, instance: Tensor, *stream: int) -> Tensor:
    """Returns a random key for every rollout, shape ``[R]``, that no other content of the batch changes.

    Args:
        instances: The instances.
        instance: Instance of each rollout, shape ``[R]``; the rollouts of one instance are numbered in order.
        *stream: Integers that name the use: seed, iteration and so on.
    """
    if instance.device.type == "cpu":
        return torch.from_numpy(rollout_numbers(instances, instance.numpy(), *stream))
    order = torch.argsort(instance, stable=True)
    counts = torch.bincount(instance, minlength=len(instances))
    first = torch.cumsum(counts, 0) - counts
    number = torch.empty_like(instance)
    number[order] = torch.arange(instance.numel(), device=instance.device) - first[instance[order]]
    return combine(_named(stream), instances.own_key[instance], number)


def rollout_numbers(instances: Instances, instance: NDArray[Any], *stream: int) -> NDArray[Any]:
    """Does what :func:`rollout_keys` does, in NumPy."""
    own_key = instances.array("own_key")
    if len(instances) == 1:
        return combine_numbers(_named(stream), int(own_key[0]), counted(instance.size))
    return combine_numbers(_named(stream), own_key[instance], numbered(instance, len(instances)))


def _named(stream: tuple[int, ...]) -> int:
    """Returns one number for the use of random numbers."""
    return combine_integers(*map(int, stream)) if stream else 0


def follow_policy(
    policy: Policy, encoding: object, *, temperature: float = 1.0, epsilon: float = 0.0, evenly: bool = False
) -> Chooser:
    """Chooses as the policy does: adds node ``u`` or stops with probability proportional to its flow.

    Args:
        policy: The policy.
        encoding: What it made of the instances (:meth:`Policy.encode`).
        temperature: Divides the log-flows; above 1 explores, towards 0 becomes greedy.
        epsilon: Share of choices that are uniform over all actions instead.
        evenly: Whether rollouts at the same state share its actions out (:mod:`~gflowexplainer.flow.even_draws`).
    """

    @torch.no_grad()
    def choose(states: States, at: Tensor, draw: Tensor) -> Action:
        flows = policy.log_flows(encoding, states)
        number = even_draws(at, draw[:, 0], len(states)) if evenly else draw[:, 0]
        entry = _draw(states, at, number, flows[0].double() / temperature, flows[1].double() / temperature)
        if epsilon > 0:
            # A number below epsilon is, divided by it, again one in (0, 1).
            anything = _draw_uniformly(states, at, (draw[:, 1] / epsilon).clamp(max=1), states.complete)
            entry = torch.where(draw[:, 1] < epsilon, anything, entry)
        return Action(entry, flows)

    return choose


def follow_greedily(policy: Policy, encoding: object) -> Chooser:
    """Always takes the largest flow."""

    @torch.no_grad()
    def choose(states: States, at: Tensor, draw: Tensor) -> Action:
        action, stop = policy.log_flows(encoding, states)
        best = segment_argmax(action, states.frontier_state, len(states))
        stops = (best < 0) | (stop >= action[best.clamp(min=0)]) if action.numel() else best < 0
        return Action(torch.where(stops, STOP, best)[at], (action, stop))

    return choose


def grow_uniformly(states: States, at: Tensor, draw: Tensor) -> Action:
    """Adds any frontier node with equal probability and never stops by itself."""
    never = torch.zeros(len(states), dtype=torch.bool, device=at.device)
    return Action(_draw_uniformly(states, at, draw[:, 0], never))


def grow_by(score: Tensor) -> Chooser:
    """Always adds the frontier node with the largest ``score`` ``[n]`` and never stops by itself."""

    def choose(states: States, at: Tensor, draw: Tensor) -> Action:
        return Action(segment_argmax(score[states.frontier], states.frontier_state, len(states))[at])

    return choose


def grow_inside(goal: Subgraphs) -> Chooser:
    """Rebuilds given subgraphs, one a rollout, in a random order that keeps every step connected."""
    remaining = goal

    def choose(states: States, at: Tensor, draw: Tensor) -> Action:
        nonlocal remaining
        visit, entry = states.frontiers(at)
        wanted = torch.nonzero((remaining.members[visit] == states.frontier[entry, None]).any(dim=1)).flatten()
        counts = torch.bincount(visit[wanted], minlength=at.numel())
        place = pointers(counts)[:-1] + (draw[:, 0] * counts).long()
        chosen = torch.full_like(at, STOP)
        some = counts > 0
        chosen[some] = entry[wanted[place[some]]]
        remaining = remaining[torch.nonzero(chosen != STOP).flatten()]
        return Action(chosen)

    return choose


def _draw(states: States, at: Tensor, draw: Tensor, action: Tensor, stop: Tensor) -> Tensor:
    """Picks in proportion to ``exp`` of the logits ``[F]`` and ``[U]``, for each of ``B`` numbers in (0, 1).

    The weights of all frontiers stand on one line, and a number says how far into its state's part of it to go;
    stopping stands behind it.
    """
    if action.numel() == 0:
        return torch.full_like(at, STOP)
    ptr = states.frontier_ptr
    top = torch.maximum(stop, segment_max(action, states.frontier_state, len(states)))
    line = torch.cumsum((action - top[states.frontier_state]).exp(), 0)
    ends = torch.cat([line.new_zeros(1), line])[ptr]
    begin, length = ends[:-1], ends.diff()
    way = draw * (length + (stop - top).exp())[at]
    entry = torch.searchsorted(line, begin[at] + way, right=True)
    entry = torch.minimum(torch.maximum(entry, ptr[at]), ptr[at + 1] - 1)
    return torch.where(way >= length[at], STOP, entry)


def _draw_uniformly(states: States, at: Tensor, draw: Tensor, may_stop: Tensor) -> Tensor:
    """Picks any action with equal probability, for each of ``B`` numbers in (0, 1); stopping where ``may_stop``."""
    counts = states.frontier_counts
    place = (draw * (counts + may_stop)[at]).long()
    return torch.where(place < counts[at], states.frontier_ptr[at] + place, STOP)
