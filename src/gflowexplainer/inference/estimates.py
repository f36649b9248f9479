"""Two estimates from sampled subgraphs: what the policy says, and what the reward says of what it proposed.

The first counts samples. The second weighs each sample by how much more the target wants it than the policy gave it,
so that it tends to the target distribution of the instance itself, however far off the policy is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.measure import log_steps
from gflowexplainer.flow.policy import log_outflow
from gflowexplainer.flow.sampling import Rollouts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, place_keys
from gflowexplainer.ops.segments import segment_logsumexp, segment_sum
from gflowexplainer.ops.sorting import find_sorted, first_of_each
from gflowexplainer.rewards.base import Reward
from gflowexplainer.settings import Settings

NEGLIGIBLE = 1e-9
_ENTRIES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Estimates:
    """A distribution over the ``U`` different subgraphs among some samples.

    Attributes:
        subgraphs: The different subgraphs.
        probability: Probability of each within its instance, shape ``[U]``.
        node: Probability of each node of the instances, shape ``[n]``.
        neighbor: Probability of each neighbour entry (both ends inside), shape ``[m]``.
    """

    subgraphs: Subgraphs
    probability: Tensor
    node: Tensor
    neighbor: Tensor


def shares(instances: Instances, samples: Subgraphs, log_weight: Tensor | None = None) -> Tensor:
    """Returns the share of each of ``B`` samples in its instance, by log-weights ``[B]``; equal ones if not given."""
    instance, number = samples.instance, len(instances)
    if log_weight is None:
        return 1 / torch.bincount(instance, minlength=number)[instance].double()
    weight = log_weight.double()
    return (weight - segment_logsumexp(weight, instance, number)[instance]).exp()


def _tally(instances: Instances, samples: Subgraphs, share: Tensor) -> tuple[Subgraphs, Tensor]:
    """Lists the different samples and their probabilities, by the share of each."""
    _, first, group = first_of_each(place_keys(instances, samples))
    return samples[first], segment_sum(share, group, first.numel())


@torch.no_grad()
def expected_marginals(rollouts: Rollouts) -> tuple[Tensor, Tensor]:
    r"""Returns the policy's probability of every node ``[n]`` and neighbour entry ``[m]``, by what it might have done.

    A node joins a rollout at most once, so the probability that it is inside at the end is the expected sum, over the
    steps, of the probability that it joins at that step, and an edge is inside when the later of its ends has joined:

    .. math:: P(u \in s) = \mathbb{E} \sum_t P_F(u \mid s_t), \qquad
              P(uv \subseteq s) = \mathbb{E} \sum_t P_F(u \mid s_t) [v \in s_t] + P_F(v \mid s_t) [u \in s_t]

    This has the expectation of counting ends and tells improbable nodes apart that no rollout took. It has less noise
    than counting, but for nodes and edges that are nearly always inside: their sum varies about 1, also beyond it,
    with when they joined.

    Args:
        rollouts: Rollouts of every instance that followed a policy, without exploration.
    """
    states, instances = rollouts.states, rollouts.states.instances
    action, stop = _followed(rollouts)
    count = torch.bincount(states.instance[rollouts.state[rollouts.last]], minlength=len(instances)).clamp(min=1)
    share = torch.bincount(rollouts.state, minlength=len(states)) / count[states.instance].double()
    joins = (action - log_outflow(states, action, stop)[states.frontier_state]).exp() * share[states.frontier_state]
    node = torch.zeros(instances.num_nodes, dtype=torch.double, device=joins.device)
    if states.rooted:
        present = torch.unique(states.members[rollouts.state[rollouts.last], 0])
        node[present] = 1.0
    node.index_add_(0, states.frontier, joins)
    if instances.other_end is not None:
        node[instances.other_end] = 1.0
    edge = torch.zeros(instances.neighbor.numel(), dtype=torch.double, device=joins.device)
    matter = torch.nonzero(joins > NEGLIGIBLE).flatten()
    keys, size = instances.neighbor_key, instances.num_nodes
    for part in matter.split(_ENTRIES_AT_ONCE):
        members = states.members[states.frontier_state[part]]
        entry, slot = torch.nonzero(members >= 0, as_tuple=True)
        position, found = find_sorted(keys, states.frontier[part][entry] * size + members[entry, slot])
        edge.index_add_(0, position[found], joins[part][entry[found]])
    # An edge has been counted from the end that joined later; now from both.
    counted = torch.nonzero(edge).flatten()
    back, _ = find_sorted(keys, instances.neighbor[counted] * size + instances.neighbor_row[counted])
    return node, edge.index_add(0, back, edge[counted])


@torch.no_grad()
def importance_weights(
    rollouts: Rollouts, log_reward: Tensor, *, measure: str = "uniform", parents: str = "dag"
) -> Tensor:
    r"""Returns the weight of each rollout that turns the policy's samples into samples of the target.

    .. math:: \log w(\tau) = \log R(s) + \log \mu(\tau) - \log P_F(\tau)

    In expectation over rollouts, :math:`w` times anything of the last subgraph is its sum over all subgraphs,
    weighed by reward and measure. The spread of :math:`\log w` is what the log-partition variance minimises.

    Args:
        rollouts: ``R`` rollouts that followed a policy, without exploration.
        log_reward: Log-reward of the subgraph that each ended in, shape ``[R]``.
        measure: What the steps of a rollout count; see :mod:`~gflowexplainer.flow.measure`.
        parents: Parent rule of the uniform measure.

    Returns:
        Log-weights, shape ``[R]``.
    """
    action, stop = _followed(rollouts)
    out, stop = log_outflow(rollouts.states, action, stop)[rollouts.state], stop[rollouts.state]
    taken = action[rollouts.chosen.clamp(min=0)] if action.numel() else stop
    forward = torch.where(rollouts.successor < 0, stop, taken) - out
    along = segment_sum(log_steps(rollouts, measure, parents) - forward, rollouts.rollout, log_reward.numel())
    return log_reward.double() + along


def _followed(rollouts: Rollouts) -> tuple[Tensor, Tensor]:
    """Returns the log-flows that rollouts followed, in double precision."""
    if rollouts.flows is None:
        raise ConfigError("These rollouts followed no policy, so they have no probabilities.")
    action, stop = rollouts.flows
    return action.double(), stop.double()


@torch.no_grad()
def estimate_from_policy(rollouts: Rollouts) -> Estimates:
    """Returns the policy's own estimates: subgraphs as often as they came, the rest by :func:`expected_marginals`."""
    instances, samples = rollouts.states.instances, rollouts.subgraphs
    subgraphs, probability = _tally(instances, samples, shares(instances, samples))
    return Estimates(subgraphs, probability, *expected_marginals(rollouts))


@torch.no_grad()
def reward_weights(rollouts: Rollouts, reward: Reward, settings: Settings) -> Tensor:
    """Returns the :func:`importance_weights` of rollouts of a trained network under ``reward``, shape ``[R]``."""
    states, (end, _, which) = rollouts.states, first_of_each(rollouts.state[rollouts.last])
    log_reward = reward.log_reward(states.subgraphs[end], states.can_grow[end])[which]
    return importance_weights(rollouts, log_reward, measure=settings.measure, parents=settings.parents)


@torch.no_grad()
def disagreement(rollouts: Rollouts, reward: Reward, settings: Settings) -> Tensor:
    """Returns the total variation between what a policy sampled and the same samples weighed by reward, ``[I]``.

    It is 0 where the policy samples from its target.
    """
    instances, samples = rollouts.states.instances, rollouts.subgraphs
    plain, weighed = shares(instances, samples), shares(instances, samples, reward_weights(rollouts, reward, settings))
    _, first, group = first_of_each(place_keys(instances, samples))
    gap = segment_sum(plain - weighed, group, first.numel()).abs()
    return segment_sum(gap, samples.instance[first], len(instances)) / 2
