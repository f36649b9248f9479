"""How far explanations can be trusted: certificates against every subgraph there is, and reasons for doubt in words."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.choices import Measure
from gflowexplainer.errors import EnumerationError
from gflowexplainer.explanation.findings import Certificate
from gflowexplainer.flow.exact import Enumeration, enumerate_subgraphs, exact_marginals, total_variation
from gflowexplainer.flow.measure import log_growth
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import subgraph_keys
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.steering import AGREED

UNEXPLAINED = 0.05
"""A share of variance below which the evidence explains nothing."""
SCALES = 1e3
"""Columns of features whose spreads differ by this factor are on different scales."""


def certify(sampler: FlowSampler, estimates: Estimates, instance: int, limit: int) -> Certificate:
    """Measures what is shown against the truth of one instance: every connected subgraph there is.

    Args:
        sampler: What was sampled from.
        estimates: What is shown of all its instances.
        instance: Which of them to certify.
        limit: Number of connected subgraphs above which nothing is computed.
    """
    one = torch.tensor([instance], device=sampler.instances.device)
    max_nodes = sampler.settings.max_nodes
    try:
        enumeration = enumerate_subgraphs(sampler.instances, one, sampler.starts(one), max_nodes, limit=limit)
    except EnumerationError:
        return Certificate(
            reason=f"There are more than {limit} connected subgraphs of at most {max_nodes} nodes. "
            "Raise 'certificate_limit' or lower 'max_nodes'."
        )
    target = target_distribution(enumeration, sampler.reward, sampler.settings.measure)
    nodes = slice(int(sampler.instances.ptr[instance]), int(sampler.instances.ptr[instance + 1]))
    exact_node = exact_marginals(enumeration, target)[0][nodes]
    return Certificate(
        distance=float(total_variation(enumeration, _shown(enumeration, estimates, instance), target)),
        node_error=float((estimates.node[nodes] - exact_node).abs().max()),
        num_subgraphs=int(enumeration.states.complete.sum()),
    )


def target_distribution(enumeration: Enumeration, reward: Reward, measure: str = "uniform") -> Tensor:
    """Returns the log-probability of every state under the target distribution, shape ``[S]``; an empty one has none.

    Args:
        enumeration: Every connected subgraph.
        reward: What they are worth.
        measure: What they count before that; see :mod:`~gflowexplainer.flow.measure`.
    """
    states = enumeration.states
    some = torch.nonzero(states.complete).flatten()
    log_reward = torch.zeros(len(states), dtype=torch.double, device=states.size.device)
    log_reward[some] = reward.log_reward(states.subgraphs[some], states.can_grow[some]).double()
    if Measure.of("measure", measure) == Measure.growth:
        log_reward += log_growth(states, enumeration.child, enumeration.level_ptr)
    return enumeration.normalize(log_reward)


def _shown(enumeration: Enumeration, estimates: Estimates, instance: int) -> Tensor:
    """Returns the log-probability of every state as it is shown, shape ``[S]``; ``-inf`` where it was not sampled."""
    instances = enumeration.states.instances
    mine = torch.nonzero(estimates.subgraphs.instance == instance).flatten()
    keys, order = torch.sort(subgraph_keys(instances, estimates.subgraphs[mine]))
    position, found = find_sorted(keys, subgraph_keys(instances, enumeration.subgraphs))
    probability = estimates.probability[mine][order][position]
    return torch.where(found, probability, 0.0).log()


def doubts_about(reward: Reward, error: float, position: int) -> tuple[str, ...]:
    """Says what speaks against the explanation of one instance; nothing if nothing does.

    Args:
        reward: What was sampled by.
        error: How far what is shown is off, in total variation.
        position: The instance.
    """
    said = list(reward.predictor.notes)
    if error > AGREED:
        said.append(
            f"The probabilities may be off by {error:.2f} in total variation: independent samples differ by that much. "
            "Raise 'num_samples', or lower 'max_nodes' so that all subgraphs can be listed."
        )
    if isinstance(reward, EvidenceReward) and reward.learned.explained < UNEXPLAINED:
        said.append(
            f"Kinds of nodes explain {max(0.0, 100 * reward.learned.explained):.0f}% of what the model says of random "
            "pieces, so good and bad subgraphs are hardly told apart. reward='context' asks the model itself."
        )
    return (*said, *scales(reward.instances, position))


def scales(instances: Instances, position: int) -> list[str]:
    """Says that features of an instance are on wildly different scales, if they are."""
    rows = instances.rows(slice(int(instances.ptr[position]), int(instances.ptr[position + 1])))
    if rows.size(0) < 2:
        return []
    spread = rows.float().std(dim=0)
    varies = spread[spread > 0]
    if varies.numel() < 2 or float(varies.max()) <= SCALES * float(varies.median()):
        return []
    column = int(torch.argmax(spread))
    return [
        f"Column {column} of the features spreads {float(varies.max() / varies.median()):.0f} times as far as a usual "
        "one. Models and explanations see little beside it; scale the features."
    ]
