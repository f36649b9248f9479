"""Rollouts: grows subgraphs for all instances of a batch at once, under any rule of choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.flow.policy import Policy
from gflowexplainer.flow.states import States
from gflowexplainer.instances import Instances
from gflowexplainer.noise import combine, gumbel, uniform
from gflowexplainer.segments import segment_argmax
from gflowexplainer.subgraphs import Subgraphs, instance_keys

STOP = -1
Chooser = Callable[[States, Tensor], Tensor]
"""Maps ``B`` states and a random key for each, ``[B]``, to a frontier position for each, or :data:`STOP`."""


@dataclass(frozen=True)
class Rollouts:
    """All states that ``R`` rollouts visited, ``S`` in total, by depth and then by rollout.

    Attributes:
        states: The visited states.
        rollout: Rollout of each state, shape ``[S]``.
        chosen: Position in ``states.frontier`` of the node added next, :data:`STOP` at the end, shape ``[S]``.
        successor: Where in ``states`` the next state of the rollout lies, ``-1`` at the end, shape ``[S]``.
        last: Where in ``states`` each rollout ends, shape ``[R]``.
    """

    states: States
    rollout: Tensor
    chosen: Tensor
    successor: Tensor
    last: Tensor

    @property
    def subgraphs(self) -> Subgraphs:
        """The subgraph that each rollout ended in, ``R`` of them."""
        return self.states.subgraphs[self.last]


def roll_out(
    instances: Instances,
    instance: Tensor,
    start: Tensor | None,
    max_nodes: int,
    choose: Chooser,
    key: Tensor | None = None,
) -> Rollouts:
    """Grows one subgraph for each entry of ``instance`` until ``choose`` stops it or nothing can be added.

    Args:
        instances: The instances.
        instance: Instance of each rollout, shape ``[R]``.
        start: Start node of each, shape ``[R]``, or ``None`` for states without root.
        max_nodes: Size bound.
        choose: The rule of choice.
        key: A random key of each rollout, shape ``[R]``; see :func:`rollout_keys`.
    """
    states = States.initial(instances, instance, start, max_nodes)
    rollout = torch.arange(instance.numel(), device=instance.device)
    key = rollout_keys(instances, instance) if key is None else key
    parts, rollouts, choices, successors = [], [], [], []
    offset, entries = 0, 0
    while len(states):
        depth_key = combine(key[rollout], states.size)
        chosen = torch.where(states.can_grow, choose(states, depth_key), STOP)
        goes_on = torch.nonzero(chosen != STOP).flatten()
        successor = torch.full_like(chosen, -1)
        successor[goes_on] = offset + len(states) + torch.arange(goes_on.numel(), device=chosen.device)
        parts.append(states)
        rollouts.append(rollout)
        choices.append(torch.where(chosen == STOP, STOP, chosen + entries))
        successors.append(successor)
        offset += len(states)
        entries += states.frontier.numel()
        going = states.select(goes_on)
        shift = going.frontier_ptr[:-1] - states.frontier_ptr[:-1][goes_on]
        states = going.step(chosen[goes_on] + shift) if goes_on.numel() else going
        rollout = rollout[goes_on]
    visited, successor = torch.cat(rollouts), torch.cat(successors)
    last = torch.empty(instance.numel(), dtype=torch.long, device=instance.device)
    ends = torch.nonzero(successor == -1).flatten()
    last[visited[ends]] = ends
    return Rollouts(States.cat(parts), visited, torch.cat(choices), successor, last)


def rollout_keys(instances: Instances, instance: Tensor, *stream: int) -> Tensor:
    """Gives every rollout a random key, shape ``[R]``, that no other content of the batch changes.

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
    base = combine(*stream) if stream else 0
    return combine(base, instance_keys(instances)[instance], number)


def follow_policy(policy: Policy, encoding: object, *, temperature: float = 1.0, epsilon: float = 0.0) -> Chooser:
    """Chooses as the policy does: adds node ``u`` or stops with probability proportional to its flow.

    Args:
        policy: The policy.
        encoding: What it made of the instances (:meth:`Policy.encode`).
        temperature: Divides the log-flows; above 1 explores, towards 0 becomes greedy.
        epsilon: Share of choices that are uniform over all actions instead.
    """

    @torch.no_grad()
    def choose(states: States, key: Tensor) -> Tensor:
        action, stop = policy.log_flows(encoding, states)
        action, stop = action.double() / temperature, stop.double() / temperature
        if epsilon > 0:
            uniformly = uniform(key, 1) < epsilon
            action = torch.where(uniformly[states.frontier_state], 0.0, action)
            stop = torch.where(uniformly & (states.size > 0), 0.0, stop)
        return _perturb_and_choose(states, key, action, stop)

    return choose


def follow_greedily(policy: Policy, encoding: object) -> Chooser:
    """Always takes the largest flow."""

    @torch.no_grad()
    def choose(states: States, key: Tensor) -> Tensor:
        action, stop = policy.log_flows(encoding, states)
        best = segment_argmax(action, states.frontier_state, len(states))
        stops = (best < 0) | (stop >= action[best.clamp(min=0)]) if action.numel() else best < 0
        return torch.where(stops, STOP, best)

    return choose


def grow_uniformly(states: States, key: Tensor) -> Tensor:
    """Adds any frontier node with equal probability and never stops by itself."""
    flat = torch.zeros(states.frontier.numel(), dtype=torch.double, device=key.device)
    return _perturb_and_choose(states, key, flat, flat.new_full((len(states),), -torch.inf))


def grow_by(score: Tensor) -> Chooser:
    """Always adds the frontier node with the largest ``score`` ``[n]`` and never stops by itself."""

    def choose(states: States, key: Tensor) -> Tensor:
        return segment_argmax(score[states.frontier], states.frontier_state, len(states))

    return choose


def grow_inside(goal: Subgraphs) -> Chooser:
    """Rebuilds given subgraphs, one a rollout, in a random order that keeps every step connected."""
    remaining = goal

    def choose(states: States, key: Tensor) -> Tensor:
        nonlocal remaining
        state = states.frontier_state
        wanted = (remaining.members[state] == states.frontier[:, None]).any(dim=1)
        flat = torch.where(wanted, 0.0, -torch.inf).double()
        chosen = _perturb_and_choose(states, key, flat, flat.new_full((len(states),), -torch.inf))
        remaining = remaining[torch.nonzero(chosen != STOP).flatten()]
        return chosen

    return choose


def _perturb_and_choose(states: States, key: Tensor, action: Tensor, stop: Tensor) -> Tensor:
    """Samples in proportion to ``exp`` of the logits by adding Gumbel noise and taking the largest."""
    state = states.frontier_state
    noisy = action + gumbel(key[state], states.instances.key[states.frontier])
    best = segment_argmax(noisy, state, len(states))
    if noisy.numel() == 0:
        return torch.full_like(best, STOP)
    top = torch.where(best < 0, -torch.inf, noisy[best.clamp(min=0)])
    stops = (stop + gumbel(key, 0) >= top) | (top == -torch.inf)
    return torch.where(stops, STOP, best)
