"""From a trained flow network to explanations: samples, read, ranked and put back into the user's graph."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from gflowexplainer.explanation.certificate import PendingCertificate
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.ranked_subgraphs import Answer, RankedSubgraph
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.certify import certify
from gflowexplainer.inference.estimates import EXPLAINING, Reading, read_policy, read_samples, reward_weights
from gflowexplainer.model.task import Question
from gflowexplainer.ops.sparse_rows import SparseRows
from gflowexplainer.training.trainer import Trainer


@torch.no_grad()
def answer(
    trainer: Trainer,
    question: Question,
    *,
    num_samples: int,
    weighting: str,
    certificate_limit: int,
    model_name: str,
) -> list[SubgraphExplanation]:
    """Explains the instances of ``question`` by a trained network, one explanation each.

    Args:
        trainer: Holds instances, reward and trained network.
        question: What was asked.
        num_samples: Subgraphs sampled for each explanation.
        weighting: ``"policy"`` or ``"reward"``; see :mod:`gflowexplainer.inference.estimates`.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        model_name: Fingerprint of the explained model.
    """
    instances, network = trainer.instances, trainer.network
    every = torch.arange(len(instances), device=instances.device)
    rollouts = network.sample(trainer.inputs, every.repeat_interleave(num_samples), EXPLAINING)
    samples = rollouts.subgraphs
    weighed = read_samples(instances, samples, reward_weights(rollouts, trainer.reward, trainer.settings))
    reading = weighed if weighting == "reward" else read_policy(rollouts)
    ranked = _rank(trainer, question, reading)
    edge = edge_values(instances, reading.neighbor)
    source, destination = instances.edge_index
    edge = torch.where(source == destination, reading.node[source], edge)
    kept = _predict_kept(trainer)
    explanations = []
    for i, graph in enumerate(question.graphs):
        compute = partial(certify, trainer, reading, i, certificate_limit, model_name)
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
        node_mask = _scattered(reading.node[nodes, None], instances.node_id[nodes], graph.nodes, shown.x.size(0))
        edge_mask = _scattered(edge[edges], instances.edge_id[edges], graph.edges, shown.edge_index.size(1))
        arguments = {name: value for name, value in shown.arguments.items() if value is not None}
        explanation = SubgraphExplanation.of(
            known,
            x=shown.x,
            edge_index=shown.edge_index,
            node_mask=node_mask,
            edge_mask=edge_mask,
            **question.shown[i],
            **arguments,
        )
        explanation._model_args = list(arguments)
        explanations.append(explanation)
    return explanations


def _predict_kept(trainer: Trainer) -> dict[int, tuple[float, ...]]:
    """Asks what the model predicts on those instances from which nodes were left out."""
    instances = trainer.instances
    if instances.left_out is None:
        return {}
    which = torch.nonzero(instances.left_out).flatten()
    with trainer.predictor.borrow():
        rows = trainer.predictor.whole(instances.select(which)).tolist()
    return {i: tuple(row) for i, row in zip(which.tolist(), rows, strict=True)}


def _scattered(values: Tensor, place: Tensor, outer: Tensor | None, size: int) -> SparseRows:
    """Gives probabilities ``[k, ...]`` their places in the user's graph, zero elsewhere, shape ``[size, ...]``."""
    return SparseRows(values.clamp(0, 1).float(), place if outer is None else outer[place], size)


def _rank(trainer: Trainer, question: Question, reading: Reading) -> list[tuple[RankedSubgraph, ...]]:
    """Lists the different subgraphs of each instance, most probable first, with what the model says of each."""
    instances, subgraphs = trainer.instances, reading.subgraphs
    with trainer.predictor.borrow():
        columns = (
            reading.probability,
            trainer.reward.log_score(subgraphs).exp(),
            trainer.reward.predict(subgraphs),
            trainer.reward.predict(subgraphs, without=True),
        )
    probability, node_id = reading.node.tolist(), instances.node_id.tolist()
    center = instances.center.tolist()
    found: list[list[RankedSubgraph]] = [[] for _ in range(len(instances))]
    rows = zip(subgraphs.instance.tolist(), subgraphs.members.tolist(), *(c.tolist() for c in columns), strict=True)
    for i, slots, share, reward, only, without in rows:
        members = sorted((m for m in slots if m >= 0), key=lambda m: (m != center[i], -probability[m], m))
        outer = question.graphs[i].nodes
        ids = [node_id[m] for m in members]
        nodes = tuple(ids if outer is None else outer[ids].tolist())
        found[i].append(RankedSubgraph(nodes, share, reward, tuple(only), tuple(without)))
    return [tuple(sorted(each, key=lambda s: (-s.probability, -s.reward, s.nodes))) for each in found]
