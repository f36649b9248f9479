"""From a trained sampler to explanations: samples, estimates, and on demand everything that is shown of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor
from torch_geometric.explain import ModelConfig

from gflowexplainer.choices import Weighting
from gflowexplainer.errors import ModelError
from gflowexplainer.explanation.certificate import PendingCertificate
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.ranked_subgraphs import (
    Prediction,
    RankedSubgraph,
    SubgraphDistribution,
    SubgraphPredictions,
)
from gflowexplainer.explanation.studies import Studies
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.certify import certify, same_model
from gflowexplainer.inference.estimates import Estimates, estimate_from_policy, estimate_from_samples, reward_weights
from gflowexplainer.inference.instance_study import InstanceStudy
from gflowexplainer.ops.segments import pointers
from gflowexplainer.ops.sparse_rows import SparseRows
from gflowexplainer.ops.streams import Stream
from gflowexplainer.sampler import FlowSampler


@dataclass(frozen=True)
class SampledExplanations:
    """Explanations of the ``I`` instances of a sampler, as flat tensors; each is built when it is asked for.

    Attributes:
        sampler: The trained sampler.
        estimates: What is shown: probabilities of subgraphs, nodes and edges.
        effective_size: Effective sample size of each instance, shape ``[I]``.
        num_samples: Subgraphs sampled of each.
        weighting: ``"policy"`` or ``"reward"``.
        certificate_limit: Connected subgraphs up to which a certificate is computed.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
    """

    sampler: FlowSampler
    estimates: Estimates
    effective_size: Tensor
    num_samples: int
    weighting: str
    certificate_limit: int
    model_name: str
    config: ModelConfig | None = None

    def __len__(self) -> int:
        return len(self.sampler.instances)

    @cached_property
    def node_probability(self) -> Tensor:
        """Probability of each node, shape ``[n]``."""
        return self.estimates.node.clamp(0, 1).float()

    @cached_property
    def edge_probability(self) -> Tensor:
        """Probability that both ends of each edge are inside, of a self loop that its node is, shape ``[e]``."""
        instances = self.sampler.instances
        edge = edge_values(instances, self.estimates.neighbor)
        source, target = instances.edge_index
        return torch.where(source == target, self.estimates.node[source], edge).clamp(0, 1).float()

    @cached_property
    def predictions(self) -> SubgraphPredictions:
        """What the model predicts with only, and without, each subgraph."""
        return SubgraphPredictions(self._predict)

    def _predict(self, without: bool) -> list[list[float]]:
        if not same_model(self.sampler, self.model_name):
            raise ModelError(
                "The model was moved or trained on after it was explained, so what it predicts on subgraphs can no "
                "longer be told. Explain it again."
            )
        return self.sampler.reward.predict(self.estimates.subgraphs, without=without).tolist()

    @cached_property
    def _reward(self) -> Tensor:
        return self.sampler.reward.log_score(self.estimates.subgraphs).exp()

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor]:
        """Rows of ``estimates.subgraphs`` by instance, and where those of each begin, ``[U]`` and ``[I + 1]``."""
        instance = self.estimates.subgraphs.instance
        return torch.argsort(instance, stable=True), pointers(torch.bincount(instance, minlength=len(self)))

    @cached_property
    def _kept(self) -> dict[int, Prediction]:
        """What the model predicts on those instances from which nodes were left out."""
        instances = self.sampler.instances
        if instances.left_out is None:
            return {}
        which = torch.nonzero(instances.left_out).flatten()
        predictor = self.sampler.predictor
        with predictor.evaluating():
            rows = predictor.whole(instances.select(which)).tolist()
        return {i: tuple(row) for i, row in zip(which.tolist(), rows, strict=True)}

    def mask(self, kind: str) -> tuple[Tensor, Tensor, Tensor, int]:
        """Returns ``"node"`` or ``"edge"`` masks: row, column and value of each entry, and the number of columns."""
        instances, graphs = self.sampler.instances, self.sampler.inputs.graphs
        # Of the nodes of one graph, all have the same.
        shown = [graph.shown or graph for graph in {id(graph): graph for graph in graphs}.values()]
        every = torch.arange(len(self), device=instances.device)
        if kind == "node":
            counts, place, value = instances.node_counts, instances.node_id, self.node_probability
            outer, size = [graph.nodes for graph in graphs], max(graph.x.size(0) for graph in shown)
        else:
            counts, place, value = instances.edge_counts, instances.edge_id, self.edge_probability
            outer, size = [graph.edges for graph in graphs], max(graph.edge_index.size(1) for graph in shown)
        if any(ids is not None for ids in outer):
            parts = place.split(counts.tolist())
            place = torch.cat([part if ids is None else ids[part] for part, ids in zip(parts, outer, strict=True)])
        return torch.repeat_interleave(every, counts), place, value, size

    def build(self, position: int) -> SubgraphExplanation:
        """Makes the explanation of one instance."""
        instances, inputs, i = self.sampler.instances, self.sampler.inputs, position
        graph, center = inputs.graphs[i], int(instances.center[i])
        compute = partial(certify, self.sampler, self.estimates, i, self.certificate_limit, self.model_name)
        distribution = SubgraphDistribution(
            rank=partial(self._rank, i),
            node=None if center < 0 else int(instances.node_id[center]),
            weighting=self.weighting,
            num_samples=self.num_samples,
            effective_sample_size=float(self.effective_size[i]),
            certificate=PendingCertificate(compute),
            left_out=0 if instances.left_out is None else int(instances.left_out[i]),
            prediction_kept=self._kept.get(i),
        )
        nodes = slice(int(instances.ptr[i]), int(instances.ptr[i + 1]))
        edges = slice(int(instances.edge_ptr[i]), int(instances.edge_ptr[i + 1]))
        shown = graph.shown or graph
        arguments = {name: value for name, value in shown.arguments.items() if value is not None}
        explanation = SubgraphExplanation.of(
            distribution,
            x=shown.x,
            edge_index=shown.edge_index,
            node_mask=_placed(
                self.node_probability[nodes, None], instances.node_id[nodes], graph.nodes, shown.x.size(0)
            ),
            edge_mask=_placed(
                self.edge_probability[edges], instances.edge_id[edges], graph.edges, shown.edge_index.size(1)
            ),
            **inputs.fields(i),
            **arguments,
        )
        explanation._model_args = list(arguments)
        explanation._studies = Studies(self._study(i, distribution), model=self.model_name)
        if self.config is not None:
            explanation._model_config = self.config
        return explanation

    def _study(self, i: int, distribution: SubgraphDistribution) -> InstanceStudy:
        """Returns what counterfactuals and contributions of features are computed by."""
        node_id, outer = self.sampler.instances.node_id, self.sampler.inputs.graphs[i].nodes

        def name(node: int) -> int:
            return int(node_id[node]) if outer is None else int(outer[node_id[node]])

        return InstanceStudy(self.sampler, i, lambda: [s.nodes for s in distribution.subgraphs], name, self.model_name)

    def _rank(self, i: int) -> Sequence[RankedSubgraph]:
        """Lists the different subgraphs of an instance, most probable first."""
        instances, (order, first) = self.sampler.instances, self._rows
        rows = order[int(first[i]) : int(first[i + 1])]
        center, begin = int(instances.center[i]), int(instances.ptr[i])
        probability = self.estimates.node[begin : int(instances.ptr[i + 1])].tolist()
        node_id = instances.node_id[begin : int(instances.ptr[i + 1])].tolist()
        outer = self.sampler.inputs.graphs[i].nodes
        columns = (self.estimates.subgraphs.members[rows], self.estimates.probability[rows], self._reward[rows])
        found = []
        for row, slots, share, reward in zip(rows.tolist(), *(column.tolist() for column in columns), strict=True):
            members = [m - begin for m in slots if m >= 0]
            members.sort(key=lambda m: (m + begin != center, -probability[m], m))
            ids = [node_id[m] for m in members]
            nodes = tuple(ids if outer is None else outer[ids].tolist())
            found.append(RankedSubgraph(nodes, share, reward, self.predictions, row))
        return sorted(found, key=lambda s: (-s.probability, -s.reward, s.nodes))


@torch.no_grad()
def explain_instances(
    sampler: FlowSampler,
    *,
    num_samples: int,
    weighting: str,
    certificate_limit: int,
    model_name: str,
    config: ModelConfig | None = None,
) -> SampledExplanations:
    """Samples the instances of a trained sampler and estimates what explanations show.

    Args:
        sampler: The trained sampler.
        num_samples: Subgraphs sampled for each explanation.
        weighting: ``"policy"`` or ``"reward"``; see :mod:`~gflowexplainer.inference.estimates`.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
    """
    instances = sampler.instances
    every = torch.arange(len(instances), device=instances.device)
    rollouts = sampler.sample(every.repeat_interleave(num_samples), Stream.explaining)
    log_weight = reward_weights(rollouts, sampler.reward, sampler.settings)
    weighed = estimate_from_samples(instances, rollouts.subgraphs, log_weight)
    estimates = weighed if weighting == Weighting.reward else estimate_from_policy(rollouts)
    return SampledExplanations(
        sampler, estimates, weighed.effective_size, num_samples, weighting, certificate_limit, model_name, config
    )


def _placed(values: Tensor, place: Tensor, outer: Tensor | None, size: int) -> SparseRows:
    """Puts probabilities ``[k, ...]`` into their places in the user's graph, zero elsewhere, shape ``[size, ...]``."""
    return SparseRows(values, place if outer is None else outer[place], size)
