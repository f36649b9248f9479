"""Pre-training of RG-Explainer: imitate good ones among random breadth-first subgraphs, by maximum likelihood."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowbench.explainers.rg_policy import RGPolicy
from gflowexplainer.flow.paper_policy import PaperEncoding
from gflowexplainer.flow.sampling import STOP, Action, Chooser, rollout_keys
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import pointers, segment_argmax
from gflowexplainer.rewards.base import Reward

SMALLEST = 4
"""Sampled subgraphs have at least this many nodes, where there are so many."""


def sample_goals(
    reward: Reward, start: Tensor, *stream: int, max_nodes: int, candidates: int, reach: int | None = None
) -> Tensor:
    """Draws breadth-first subgraphs of random size and keeps the one with the best reward for each instance.

    Args:
        reward: The reward, which knows the instances.
        start: Where they begin, one node of each instance, shape ``[I]``.
        *stream: Integers that name the random draw.
        max_nodes: Size bound ``K``.
        candidates: Subgraphs drawn for each instance.
        reach: Most steps from the start to a node; any number if not given.

    Returns:
        Nodes in the order they were reached, shape ``[I, K]``; ``-1`` fills up.
    """
    instances = reward.instances
    hops = instances.hops_from(start)
    near = (hops >= 0) if reach is None else (hops >= 0) & (hops <= reach)
    hops = torch.where(near, hops, -1)
    grown, key = breadth_first_orders(instances, hops, *stream, max_nodes=max_nodes, candidates=candidates)
    whole = torch.bincount(instances.owner[near], minlength=len(instances))
    drawn = cut_at_random(grown, key, instances.node_counts if reach is None else whole)
    best = reward.log_score(drawn).view(-1, candidates).argmax(dim=1)
    members = drawn.members.view(-1, candidates, max_nodes)
    return members[torch.arange(best.numel(), device=best.device), best]


def breadth_first_orders(
    instances: Instances, hops: Tensor, *stream: int, max_nodes: int, candidates: int
) -> tuple[Subgraphs, Tensor]:
    """Lists the nodes by their steps ``[n]`` from a start, ``-1`` for none, equally near ones in random order.

    Returns:
        ``candidates`` subgraphs of each instance behind each other, and a random key of each.
    """
    node = torch.nonzero(hops >= 0).flatten()
    several = torch.arange(len(instances), device=hops.device).repeat_interleave(candidates)
    key = rollout_keys(instances, several, *stream)
    row = instances.owner[node] * candidates + torch.arange(candidates, device=hops.device)[:, None]
    # Every node has a neighbour one step nearer to the start, so each beginning of such a list is connected.
    rank = row * (float(hops.max()) + 1) + hops[node] + uniform(key[row], instances.key[node])
    order = torch.argsort(rank.flatten())
    row, node = row.flatten()[order], node.repeat(candidates)[order]
    place = torch.arange(row.numel(), device=row.device) - pointers(torch.bincount(row, minlength=key.numel()))[row]
    members = torch.full((key.numel(), max_nodes), -1, device=hops.device)
    first = place < max_nodes
    members[row[first], place[first]] = node[first]
    return Subgraphs(several, members), key


def cut_at_random(grown: Subgraphs, key: Tensor, whole: Tensor) -> Subgraphs:
    """Keeps the first nodes of each subgraph: any number from :data:`SMALLEST` on that leaves something out.

    Args:
        grown: ``R`` subgraphs, nodes in the order they were reached.
        key: A random key of each, shape ``[R]``.
        whole: Number of nodes that could be reached in each instance, shape ``[I]``; all of them explain nothing.
    """
    most = torch.minimum(grown.size, whole[grown.instance] - 1).clamp(min=1)
    least = most.clamp(max=SMALLEST)
    length = least + (uniform(key, 2) * (most - least + 1)).long()
    slot = torch.arange(grown.members.size(1), device=key.device)
    return Subgraphs(grown.instance, torch.where(slot < length[:, None], grown.members, -1))


def in_order(goal: Tensor) -> Chooser:
    """Adds the nodes of each row of ``goal`` ``[R, K]`` in the order they stand there, then stops."""
    remaining = goal

    def choose(states: States, at: Tensor, draw: Tensor) -> Action:
        nonlocal remaining
        wanted = remaining.gather(1, states.size[at].clamp(max=states.max_nodes - 1)[:, None])[:, 0]
        visit, entry = states.frontiers(at)
        found = torch.nonzero(states.frontier[entry] == wanted[visit]).flatten()
        chosen = torch.full_like(wanted, STOP)
        chosen[visit[found]] = entry[found]
        remaining = remaining[chosen != STOP]
        return Action(chosen)

    return choose


def in_likeliest_order(goal: Tensor, policy: RGPolicy, encoding: PaperEncoding) -> Chooser:
    """Adds the nodes of each row of ``goal`` ``[R, K]``, always the one the policy likes most, then stops."""
    remaining = goal

    @torch.no_grad()
    def choose(states: States, at: Tensor, draw: Tensor) -> Action:
        nonlocal remaining
        action, _ = policy.log_flows(encoding, states)
        visit, entry = states.frontiers(at)
        wanted = torch.nonzero((remaining[visit] == states.frontier[entry, None]).any(dim=1)).flatten()
        visit, entry = visit[wanted], entry[wanted]
        best = segment_argmax(action[entry], visit, at.numel())
        chosen = torch.where(best < 0, STOP, entry[best.clamp(min=0)] if entry.numel() else STOP)
        remaining = remaining[chosen != STOP]
        return Action(chosen)

    return choose
