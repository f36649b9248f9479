"""Certifies explanations: compares what was learned and what is shown with every connected subgraph there is."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.errors import EnumerationError
from gflowexplainer.explanation.certificate import Certificate
from gflowexplainer.flow.exact import (
    Enumeration,
    enumerate_subgraphs,
    exact_marginals,
    total_variation,
)
from gflowexplainer.graphs.subgraphs import subgraph_keys
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.inference.exact_target import target_distribution
from gflowexplainer.ops.global_state import GLOBAL_STATE
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.storage.identity import model_fingerprint


def same_model(sampler: FlowSampler, model_name: str) -> bool:
    """Whether the explained model is where it was, with the weights that it had, by its fingerprint."""
    model = sampler.predictor.model
    if any(parameter.device != sampler.predictor.device for parameter in model.parameters()):
        return False
    with GLOBAL_STATE:
        return model_fingerprint(model) == model_name


def certify(sampler: FlowSampler, estimates: Estimates, instance: int, limit: int, model_name: str) -> Certificate:
    """Measures what is shown against the truth of one instance: every connected subgraph there is.

    Args:
        sampler: What was sampled from.
        estimates: What is shown of all its instances.
        instance: Which of them to certify.
        limit: Number of connected subgraphs above which nothing is computed.
        model_name: Fingerprint of the model when it was explained; if it has changed since, nothing is computed.
    """
    if not same_model(sampler, model_name):
        return Certificate(reason="The model was moved or trained on after it was explained. Explain it again.")
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
    shown = _shown(enumeration, estimates, instance)
    nodes = slice(int(sampler.instances.ptr[instance]), int(sampler.instances.ptr[instance + 1]))
    exact_node = exact_marginals(enumeration, target)[0][nodes]
    return Certificate(
        distance=float(total_variation(enumeration, shown, target)),
        node_error=float((estimates.node[nodes].clamp(0, 1) - exact_node).abs().max()),
        num_subgraphs=int(enumeration.states.complete.sum()),
    )


def _shown(enumeration: Enumeration, estimates: Estimates, instance: int) -> Tensor:
    """Returns the log-probability of every state as it is shown, shape ``[S]``; ``-inf`` where it was not sampled."""
    instances = enumeration.states.instances
    mine = torch.nonzero(estimates.subgraphs.instance == instance).flatten()
    keys, order = torch.sort(subgraph_keys(instances, estimates.subgraphs[mine]))
    position, found = find_sorted(keys, subgraph_keys(instances, enumeration.subgraphs))
    probability = estimates.probability[mine][order][position]
    return torch.where(found, probability, 0.0).log()
