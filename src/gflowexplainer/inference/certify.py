"""Certifies explanations: compares what is shown with every connected subgraph there is."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.choices import Measure
from gflowexplainer.errors import EnumerationError
from gflowexplainer.explanation.findings import Certificate
from gflowexplainer.flow.exact import Enumeration, enumerate_subgraphs, exact_marginals, total_variation
from gflowexplainer.flow.measure import log_growth
from gflowexplainer.graphs.subgraphs import subgraph_keys
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.rewards import Reward
from gflowexplainer.sampler import FlowSampler


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
