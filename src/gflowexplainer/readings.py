"""Two readings of sampled subgraphs: what the policy says, and what the reward says of what it proposed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.errors import one_of
from gflowexplainer.instances import Instances
from gflowexplainer.segments import segment_logsumexp, segment_sum
from gflowexplainer.subgraphs import Subgraphs, marginals, subgraph_keys

WEIGHTINGS = ("policy", "reward")


@dataclass(frozen=True)
class Reading:
    """A distribution over the ``U`` different subgraphs among some samples.

    Attributes:
        subgraphs: The different subgraphs.
        probability: Probability of each within its instance, shape ``[U]``.
        node: Probability of each node of the instances, shape ``[n]``.
        neighbor: Probability of each neighbour entry (both ends inside), shape ``[m]``.
        effective_size: Number of equally probable subgraphs that would be as spread out, for each instance,
            shape ``[I]``; 0 without samples.
    """

    subgraphs: Subgraphs
    probability: Tensor
    node: Tensor
    neighbor: Tensor
    effective_size: Tensor


def read_samples(instances: Instances, samples: Subgraphs, weighting: str, log_reward: Tensor | None = None) -> Reading:
    """Turns samples into probabilities of subgraphs, nodes and edges.

    Args:
        instances: The instances.
        samples: ``B`` sampled subgraphs, repeats included.
        weighting: ``"policy"``: by frequency, the policy's own answer. ``"reward"``: every different subgraph once, in
            proportion to its reward, which is right for this instance even where the policy is off.
        log_reward: Log-reward of each sample, shape ``[B]``; needed for the second.
    """
    one_of("weighting", weighting, WEIGHTINGS)
    keys = subgraph_keys(instances, samples)
    unique, group, counts = torch.unique(keys, return_inverse=True, return_counts=True)
    position = torch.arange(keys.numel(), device=keys.device)
    first = torch.full_like(unique, keys.numel()).scatter_reduce_(0, group, position, "amin")
    subgraphs = samples[first]
    log_weight = counts.double().log() if log_reward is None or weighting == "policy" else log_reward[first].double()
    total = segment_logsumexp(log_weight, subgraphs.instance, len(instances))
    probability = (log_weight - total[subgraphs.instance]).exp()
    node, neighbor = marginals(instances, subgraphs, probability)
    square = segment_sum(probability.square(), subgraphs.instance, len(instances))
    effective = torch.where(square > 0, 1 / square.clamp(min=1e-300), 0.0)
    return Reading(subgraphs, probability, node, neighbor, effective)
