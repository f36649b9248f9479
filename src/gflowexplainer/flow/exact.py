"""The exact truth of small instances: every connected subgraph, the target on them, and what a policy samples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.errors import EnumerationError
from gflowexplainer.flow.measure import passing
from gflowexplainer.flow.policy import Policy, log_outflow
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import APART, Subgraphs, marginals, subgraph_keys
from gflowexplainer.ops.segments import segment_logsumexp, segment_sum
from gflowexplainer.ops.sorting import first_of_each


@dataclass(frozen=True)
class Enumeration:
    """Every connected subgraph of some instances, ``S`` in total, with the edges of the DAG between them.

    Attributes:
        states: All states, smallest first.
        root: Which of the enumerated instances (position in the list asked for) a state belongs to, ``[S]``.
        child: The state that each frontier entry of ``states`` leads to, shape ``[F]``.
        num_roots: Number of enumerated instances.
        level_ptr: First state of each size, shape ``[levels + 1]``.
    """

    states: States
    root: Tensor
    child: Tensor
    num_roots: int
    level_ptr: list[int]

    @property
    def subgraphs(self) -> Subgraphs:
        """The subgraphs that a rollout can end in: all states but the empty ones."""
        return self.states.subgraphs

    @property
    def counts(self) -> Tensor:
        """Number of states of each enumerated instance, shape ``[num_roots]``."""
        return torch.bincount(self.root, minlength=self.num_roots)

    def normalize(self, log_weight: Tensor) -> Tensor:
        """Turns log-weights ``[S]`` into log-probabilities within each instance; what is no explanation gets none."""
        log_weight = torch.where(self.states.complete, log_weight, -torch.inf)
        return log_weight - segment_logsumexp(log_weight, self.root, self.num_roots)[self.root]


def enumerate_subgraphs(
    instances: Instances,
    instance: Tensor,
    start: Tensor | None,
    max_nodes: int,
    *,
    limit: int = 200_000,
) -> Enumeration:
    """Lists all connected subgraphs of at most ``max_nodes`` nodes, level by level, for a batch of instances.

    Args:
        instances: The instances.
        instance: Those to enumerate, shape ``[B]``.
        start: Start node of each, shape ``[B]``, or ``None`` for subgraphs anywhere in the instance.
        max_nodes: Size bound.
        limit: Subgraphs in total above which :class:`~gflowexplainer.errors.EnumerationError` is raised.
    """
    level = States.initial(instances, instance, start, max_nodes)
    root = torch.arange(instance.numel(), device=instance.device)
    levels, roots, children, offsets = [level], [root], [], [0, len(level)]
    while level.frontier.numel():
        entry_state = level.frontier_state
        if offsets[-1] + level.frontier.numel() > 8 * limit:
            raise _too_many(limit, max_nodes)
        grown = level.children()
        keys = subgraph_keys(instances, grown.subgraphs) + root[entry_state] * APART
        _, first, group = first_of_each(keys)
        # Keep the order of first discovery: it does not depend on the values of the hashes.
        order = torch.argsort(first)
        rank = torch.empty_like(order)
        rank[order] = torch.arange(order.numel(), device=root.device)
        children.append(offsets[-1] + rank[group])
        level, root = grown.select(first[order]), root[entry_state][first[order]]
        levels.append(level)
        roots.append(root)
        offsets.append(offsets[-1] + len(level))
        if offsets[-1] > limit:
            raise _too_many(limit, max_nodes)
    empty = torch.empty(0, dtype=torch.long, device=root.device)
    child = torch.cat([*children, empty])
    return Enumeration(States.cat(levels), torch.cat(roots), child, instance.numel(), offsets)


def _too_many(limit: int, max_nodes: int) -> EnumerationError:
    return EnumerationError(
        f"There are more than {limit} connected subgraphs of at most {max_nodes} nodes. "
        "Raise 'limit', lower 'max_nodes', or do without the exact truth."
    )


@torch.no_grad()
def terminal_distribution(enumeration: Enumeration, policy: Policy, encoding: object) -> Tensor:
    """Computes the log-probability that a rollout of ``policy`` ends in each state, shape ``[S]``."""
    states = enumeration.states
    action, stop = policy.log_flows(encoding, states)
    action, stop = action.double(), stop.double()
    out = log_outflow(states, action, stop)
    step = action - out[states.frontier_state]
    return passing(step, states, enumeration.child, enumeration.level_ptr) + stop - out


def total_variation(enumeration: Enumeration, log_p: Tensor, log_q: Tensor) -> Tensor:
    """Returns half the sum of absolute differences of two distributions on the states, for each instance."""
    difference = (log_p.double().exp() - log_q.double().exp()).abs()
    return 0.5 * segment_sum(difference, enumeration.root, enumeration.num_roots)


def exact_marginals(enumeration: Enumeration, log_probability: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the probability of each node ``[n]`` and of each neighbour entry ``[m]`` under a distribution."""
    return marginals(enumeration.states.instances, enumeration.subgraphs, log_probability.exp())
