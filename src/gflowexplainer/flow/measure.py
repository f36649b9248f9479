r"""What a subgraph counts before any reward: the measure :math:`\mu` of the target :math:`P(s) \propto \mu(s) R(s)`.

``"uniform"``: every connected subgraph counts alike, as in the paper. There are far more large subgraphs than small
ones, and far more of them through a hub than through anything else, so on a large computation graph the many
subgraphs that preserve the prediction a little outweigh the few that hold it well.

``"growth"``: a subgraph counts as much as random growth, which adds any frontier node with equal probability, passes
through it. Then all sizes count alike, and what a rollout must decide is only how to differ from random growth:

.. math:: \mu(s) = \sum_{\tau \to s} \prod_{i < |\tau|} \frac{1}{|\mathit{frontier}(s_i)|}

Either measure is a product over the steps of a trajectory, summed over the trajectories into a state. All objectives
but flow matching need nothing else: where the uniform measure has a backward probability, one over the number of
parents, the growth measure has the probability of a uniform step.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from gflowexplainer.choices import Measure
from gflowexplainer.flow.sampling import Rollouts
from gflowexplainer.flow.states import States
from gflowexplainer.ops.segments import segment_logsumexp


def log_steps(rollouts: Rollouts, measure: str, parents: str = "dag") -> Tensor:
    """Returns the measure's logarithm of the step that each of ``V`` visits takes, shape ``[V]``; 0 at the end.

    Args:
        rollouts: The rollouts.
        measure: ``"growth"`` or ``"uniform"``.
        parents: Parent rule; of the uniform measure.
    """
    states, successor = rollouts.states, rollouts.successor
    if Measure.of("measure", measure) == Measure.growth:
        ways = states.frontier_counts[rollouts.state]
    else:
        ways = states.parents(parents).sum(dim=1)[rollouts.state[successor.clamp(min=0)]]
    return torch.where(successor < 0, 0.0, -ways.clamp(min=1).double().log())


def log_growth(states: States, child: Tensor, level_ptr: list[int]) -> Tensor:
    """Computes the growth measure of all states of an enumeration, by dynamic programming over its DAG, ``[S]``.

    Args:
        states: Every connected subgraph, smallest first.
        child: The state that each frontier entry leads to, shape ``[F]``.
        level_ptr: First state of each size.
    """
    return passing(-states.frontier_counts.clamp(min=1).double().log()[states.frontier_state], states, child, level_ptr)


def passing(step: Tensor, states: States, child: Tensor, level_ptr: list[int]) -> Tensor:
    """Computes the log-probability of passing through each state, from that of each step ``[F]``, shape ``[S]``.

    A state is reached from all its parents, smaller ones first.
    """
    reach = torch.full((len(states),), -torch.inf, dtype=torch.double, device=step.device)
    reach[: level_ptr[1]] = 0.0
    state = states.frontier_state
    for begin, end in pairwise(level_ptr):
        entries = slice(int(states.frontier_ptr[begin]), int(states.frontier_ptr[end]))
        to = child[entries]
        if to.numel():
            total = segment_logsumexp(reach[state[entries]] + step[entries], to - end, int(to.max()) - end + 1)
            reach[end : end + total.numel()] = total
    return reach
