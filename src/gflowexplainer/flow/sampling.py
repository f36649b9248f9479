"""Rollouts: grows subgraphs for all instances of a batch at once, under any rule of choice.

Rollouts of one instance meet: all begin at the same state, and the same nodes may join in another order. A state that
several rollouts are at is held, and looked at by the policy, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gflowexplainer.flow.policy import Policy
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, place_keys
from gflowexplainer.ops.hashed_random import combine, combine_integers, uniform
from gflowexplainer.ops.memory import refuse_beyond_memory
from gflowexplainer.ops.segments import segment_argmax, segment_max
from gflowexplainer.ops.sorting import first_of_each

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
    earlier = torch.tensor([0, *counts[:-1]], device=device).cumsum(0)
    return earlier.repeat_interleave(torch.tensor(visits, device=device))


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
        step, _, which = first_of_each(chosen)
        return states.step(step), which
    reached = place_keys(states.instances, states.subgraphs)[states.frontier_state[chosen]]
    found, _, which = first_of_each(reached + states.instances.key[states.frontier[chosen]])
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
    order = torch.argsort(instance, stable=True)
    counts = torch.bincount(instance, minlength=len(instances))
    first = torch.cumsum(counts, 0) - counts
    number = torch.empty_like(instance)
    number[order] = torch.arange(instance.numel(), device=instance.device) - first[instance[order]]
    named = combine_integers(*map(int, stream)) if stream else 0
    return combine(named, instances.own_key[instance], number)


def follow_policy(
    policy: Policy, encoding: object, *, temperature: float = 1.0, epsilon: float = 0.0, evenly: bool = False
) -> Chooser:
    """Chooses as the policy does: adds node ``u`` or stops with probability proportional to its flow.

    Args:
        policy: The policy.
        encoding: What it made of the instances (:meth:`Policy.encode`).
        temperature: Divides the log-flows; above 1 explores, towards 0 becomes greedy.
        epsilon: Share of choices that are uniform over all actions instead.
        evenly: Whether rollouts at the same state share its actions out (:func:`even_draws`).
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


def grow_at_random(
    instances: Instances, instance: Tensor, start: Tensor | None, max_nodes: int, key: Tensor
) -> Subgraphs:
    """Adds one neighbour after the other, each with equal chance, until there are ``max_nodes`` nodes or no more.

    Args:
        instances: The instances.
        instance: Instance of each subgraph, shape ``[R]``.
        start: Node that each begins with, shape ``[R]``; ``None`` begins with any node.
        max_nodes: Size bound.
        key: A random key of each, shape ``[R]``.
    """
    return roll_out(instances, instance, start, max_nodes, grow_uniformly, key, cuts=False).subgraphs


def even_draws(at: Tensor, draw: Tensor, num_states: int) -> Tensor:
    """Returns a number in [0, 1) for each of ``V`` rollouts, so that those at one state share its actions out, ``[V]``.

    The numbers of the ``n`` rollouts that are at a state lie ``1 / n`` apart on a circle, which is turned at random. An
    action of probability ``p`` is then taken by ``p`` of them, up to one, so that the same number of rollouts says more
    about the policy. The number of any one of them is uniform as before.

    Args:
        at: State that each is at, shape ``[V]``; some rollout is at every state.
        draw: A random number in (0, 1) of each, shape ``[V]``; that of the first rollout at a state turns its circle.
        num_states: Number of states.
    """
    order = torch.argsort(at, stable=True)
    visits = torch.zeros(num_states, dtype=torch.long, device=at.device).index_add_(0, at, torch.ones_like(at))
    first, there = torch.cumsum(visits, 0) - visits, at[order]
    place = torch.arange(at.numel(), device=at.device) - first[there]
    number = torch.empty_like(draw)
    number[order] = (place / visits[there].double() + draw[order[first]][there]) % 1
    return number


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
