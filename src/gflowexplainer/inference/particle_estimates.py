"""What particles say, and how right it is: two independent runs, and two wider ones where these do not agree.

Where a run dropped nothing it is exact, and there is no second one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.flow.particles import Particles, sample_particles
from gflowexplainer.graphs.subgraphs import Subgraphs, place_keys
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.ops.segments import segment_logsumexp, segment_sum
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.settings import Settings
from gflowexplainer.steering import AGREED

_LEAST, _FINE = 1e-4, 1e12
_WIDER = (1, 2)
"""Times as many particles that are taken where two runs do not agree."""


@torch.no_grad()
def estimate_from_particles(reward: EvidenceReward, settings: Settings, width: int) -> tuple[Estimates, Tensor]:
    """Returns the distribution of every instance, and how far it is off, in total variation, ``[I]``; 0 where exact.

    Args:
        reward: What subgraphs are worth.
        settings: All settings.
        width: Different subgraphs of each size that are kept.
    """
    instances, count = reward.instances, len(reward.instances)
    left = torch.ones(count, dtype=torch.bool, device=instances.device)
    error = torch.zeros(count, dtype=torch.double, device=instances.device)
    found: list[tuple[Subgraphs, Tensor]] = []
    for times in _WIDER:
        one = run_particles(reward, settings, width * times, settings.seed, left)
        subgraphs, weights = [one.subgraphs], [one.log_weight]
        again = left & ~one.exact
        if again.any():
            other = run_particles(reward, settings, width * times, settings.seed + 1, again)
            subgraphs.append(other.subgraphs)
            weights.append(other.log_weight)
        merged, probability, off = _merge(reward, subgraphs, weights)
        error = torch.where(left, torch.where(one.exact, 0.0, off), error)
        settled = left & ((error <= AGREED) | (times == _WIDER[-1]))
        rows = torch.nonzero(settled[merged.instance]).flatten()
        found.append((merged[rows], probability[rows]))
        left = left & ~settled
        if not left.any():
            break
    subgraphs_found = Subgraphs.cat([some for some, _ in found])
    # What is equally probable is equally probable to the last bit, whatever order it was added up in.
    probability = ((torch.cat([share for _, share in found]).log() * _FINE).round() / _FINE).exp()
    return Estimates.of(instances, subgraphs_found, probability), error


def run_particles(reward: EvidenceReward, settings: Settings, width: int, seed: int, wanted: Tensor) -> Particles:
    """Samples the instances that are ``wanted`` ``[I]`` once."""
    return sample_particles(
        reward.instances,
        reward,
        max_nodes=settings.max_nodes,
        min_nodes=settings.min_nodes,
        width=width,
        seed=seed,
        wanted=wanted,
    )


def _merge(
    reward: EvidenceReward, subgraphs: list[Subgraphs], weights: list[Tensor]
) -> tuple[Subgraphs, Tensor, Tensor]:
    """Averages runs, and compares them.

    Returns:
        The different subgraphs, their probabilities ``[U]``, and how far these are off in each instance, ``[I]``: half
        of what two runs differ by, as their mean is nearer to the truth than either.
    """
    instances = reward.instances
    count, every = len(instances), Subgraphs.cat(subgraphs)
    run = torch.cat([torch.full_like(part.instance, number) for number, part in enumerate(subgraphs)])
    _, first, group = first_of_each(place_keys(instances, every))
    merged = every[first]
    shares = []
    for number, weight in enumerate(weights):
        instance = subgraphs[number].instance
        share = (weight - segment_logsumexp(weight, instance, count)[instance]).exp()
        shares.append(segment_sum(share, group[run == number], len(first)))
    if len(shares) == 1:
        return merged, shares[0], torch.zeros(count, dtype=torch.double, device=instances.device)
    one, other = shares
    there = segment_sum(other, merged.instance, count) > 0
    # Two runs that agree are no proof: only what dropped nothing is exact.
    off = (segment_sum((one - other).abs(), merged.instance, count) / 4).clamp(min=_LEAST)
    probability = torch.where(there[merged.instance], (one + other) / 2, one)
    return merged, probability, torch.where(there, off, 0.0)
