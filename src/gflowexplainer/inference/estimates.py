"""The distribution that everything shown is read from, as sampled by the policy of a trained flow network.

Samples are counted. Weights tell how far they are off: with the weight of how much more the target wants each sample
than the policy gave it, samples tend to the target distribution, however far off the policy is.
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
from gflowexplainer.graphs.subgraphs import Subgraphs, marginals, place_keys
from gflowexplainer.ops.segments import segment_logsumexp, segment_sum
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.base import Reward
from gflowexplainer.settings import Settings


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

    @classmethod
    def of(cls, instances: Instances, subgraphs: Subgraphs, probability: Tensor) -> Estimates:
        """Reads the probability of nodes and edges off the listed subgraphs, and off nothing else."""
        return cls(subgraphs, probability, *marginals(instances, subgraphs, probability))


def shares(instances: Instances, samples: Subgraphs, log_weight: Tensor | None = None) -> Tensor:
    """Returns the share of each of ``B`` samples in its instance, by log-weights ``[B]``; equal ones if not given."""
    instance, number = samples.instance, len(instances)
    if log_weight is None:
        return 1 / torch.bincount(instance, minlength=number)[instance].double()
    weight = log_weight.double()
    return (weight - segment_logsumexp(weight, instance, number)[instance]).exp()


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
    """Returns what the policy of a trained network samples: every subgraph as often as it came."""
    instances, samples = rollouts.states.instances, rollouts.subgraphs
    _, first, group = first_of_each(place_keys(instances, samples))
    return Estimates.of(instances, samples[first], segment_sum(shares(instances, samples), group, first.numel()))


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
