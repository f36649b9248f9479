"""From a trained flow network to explanations: samples, read, ranked and put back into the user's graph."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from gflowexplainer.choices import Weighting
from gflowexplainer.explanation.certificate import PendingCertificate
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.ranked_subgraphs import Answer, RankedSubgraph
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.certify import certify
from gflowexplainer.inference.estimates import Estimates, estimate_from_policy, estimate_from_samples, reward_weights
from gflowexplainer.ops.sparse_rows import SparseRows
from gflowexplainer.ops.streams import Stream
from gflowexplainer.sampler import FlowSampler


@torch.no_grad()
def explain_instances(
    sampler: FlowSampler,
    *,
    num_samples: int,
    weighting: str,
    certificate_limit: int,
    model_name: str,
) -> list[SubgraphExplanation]:
    """Explains the instances of a trained sampler, one explanation each.

    Args:
        sampler: The trained sampler.
        num_samples: Subgraphs sampled for each explanation.
        weighting: ``"policy"`` or ``"reward"``; see :mod:`~gflowexplainer.inference.estimates`.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        model_name: Fingerprint of the explained model.
    """
    instances, inputs = sampler.instances, sampler.inputs
    every = torch.arange(len(instances), device=instances.device)
    rollouts = sampler.sample(every.repeat_interleave(num_samples), Stream.explaining)
    log_weight = reward_weights(rollouts, sampler.reward, sampler.settings)
    weighed = estimate_from_samples(instances, rollouts.subgraphs, log_weight)
    estimates = weighed if weighting == Weighting.reward else estimate_from_policy(rollouts)
    ranked = _rank(sampler, estimates)
    edge = edge_values(instances, estimates.neighbor)
    source, destination = instances.edge_index
    edge = torch.where(source == destination, estimates.node[source], edge)
    kept = _predict_kept(sampler)
    explanations = []
    for i, graph in enumerate(inputs.graphs):
        compute = partial(certify, sampler, estimates, i, certificate_limit, model_name)
        center = int(instances.center[i])
        known = Answer(
            subgraphs=ranked[i],
            node=None if center < 0 else int(instances.node_id[center]),
            weighting=weighting,
            num_samples=num_samples,
            effective_sample_size=float(weighed.effective_size[i]),
            certificate=PendingCertificate(compute),
            left_out=0 if instances.left_out is None else int(instances.left_out[i]),
            prediction_kept=kept.get(i),
        )
        nodes = slice(int(instances.ptr[i]), int(instances.ptr[i + 1]))
        edges = slice(int(instances.edge_ptr[i]), int(instances.edge_ptr[i + 1]))
        shown = graph.shown or graph
        node_mask = _scattered(estimates.node[nodes, None], instances.node_id[nodes], graph.nodes, shown.x.size(0))
        edge_mask = _scattered(edge[edges], instances.edge_id[edges], graph.edges, shown.edge_index.size(1))
        arguments = {name: value for name, value in shown.arguments.items() if value is not None}
        explanation = SubgraphExplanation.of(
            known,
            x=shown.x,
            edge_index=shown.edge_index,
            node_mask=node_mask,
            edge_mask=edge_mask,
            **inputs.fields[i],
            **arguments,
        )
        explanation._model_args = list(arguments)
        explanations.append(explanation)
    return explanations


def _predict_kept(sampler: FlowSampler) -> dict[int, tuple[float, ...]]:
    """Evaluates the model on those instances from which nodes were left out."""
    instances = sampler.instances
    if instances.left_out is None:
        return {}
    which = torch.nonzero(instances.left_out).flatten()
    with sampler.predictor.evaluating():
        rows = sampler.predictor.whole(instances.select(which)).tolist()
    return {i: tuple(row) for i, row in zip(which.tolist(), rows, strict=True)}


def _scattered(values: Tensor, place: Tensor, outer: Tensor | None, size: int) -> SparseRows:
    """Puts probabilities ``[k, ...]`` into their places in the user's graph, zero elsewhere, shape ``[size, ...]``."""
    return SparseRows(values.clamp(0, 1).float(), place if outer is None else outer[place], size)


def _rank(sampler: FlowSampler, estimates: Estimates) -> list[tuple[RankedSubgraph, ...]]:
    """Lists the different subgraphs of each instance, most probable first, with what the model says of each."""
    instances, subgraphs = sampler.instances, estimates.subgraphs
    with sampler.predictor.evaluating():
        columns = (
            estimates.probability,
            sampler.reward.log_score(subgraphs).exp(),
            sampler.reward.predict(subgraphs),
            sampler.reward.predict(subgraphs, without=True),
        )
    probability, node_id = estimates.node.tolist(), instances.node_id.tolist()
    center = instances.center.tolist()
    found: list[list[RankedSubgraph]] = [[] for _ in range(len(instances))]
    rows = zip(subgraphs.instance.tolist(), subgraphs.members.tolist(), *(c.tolist() for c in columns), strict=True)
    for i, slots, share, reward, only, without in rows:
        members = sorted((m for m in slots if m >= 0), key=lambda m: (m != center[i], -probability[m], m))
        outer = sampler.inputs.graphs[i].nodes
        ids = [node_id[m] for m in members]
        nodes = tuple(ids if outer is None else outer[ids].tolist())
        found[i].append(RankedSubgraph(nodes, share, reward, tuple(only), tuple(without)))
    return [tuple(sorted(each, key=lambda s: (-s.probability, -s.reward, s.nodes))) for each in found]
