"""From a trained sampler to explanations: samples, estimates, and on demand everything that is shown of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor
from torch_geometric.explain import ModelConfig

from gflowexplainer.choices import Removal, Weighting
from gflowexplainer.errors import ModelError
from gflowexplainer.explanation.certificate import PendingCertificate
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.parts import Parts
from gflowexplainer.explanation.ranked_subgraphs import (
    Prediction,
    RankedSubgraph,
    SubgraphDistribution,
    SubgraphPredictions,
)
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.certify import certify, same_model
from gflowexplainer.inference.doubts import Doubts
from gflowexplainer.inference.estimates import Estimates, estimate_from_policy, estimate_from_samples, reward_weights
from gflowexplainer.inference.parts import find_parts
from gflowexplainer.ops.segments import pointers, segment_argmax
from gflowexplainer.ops.sparse_rows import SparseRows
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.consensus import ConsensusReward
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
    def _own_share(self) -> Tensor | None:
        reward = self.sampler.reward
        return reward.own_share() if isinstance(reward, ConsensusReward) else None

    @cached_property
    def node_probability(self) -> Tensor:
        """Probability of each node, shape ``[n]``.

        Where single nodes add up to the prediction, a node belongs to the explanation also by itself: as probably as
        what it adds is to what the strongest adds. The larger of the two counts.
        """
        value, own = self.estimates.node, self._own_share
        return (value if own is None else torch.maximum(value, own.to(value))).clamp(0, 1).float()

    @cached_property
    def edge_probability(self) -> Tensor:
        """Probability that both ends of each edge are inside, of a self loop that its node is, shape ``[e]``."""
        instances, own = self.sampler.instances, self._own_share
        edge = edge_values(instances, self.estimates.neighbor)
        source, target = instances.edge_index
        if own is not None:
            edge = torch.maximum(edge, torch.minimum(own[source], own[target]).to(edge))
        return torch.where(source == target, self.node_probability[source].to(edge), edge).clamp(0, 1).float()

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
        # Whatever the reward measures by, what is shown means one thing: nodes that are gone are gone.
        subgraphs = self.estimates.subgraphs
        return self.sampler.reward.predict(subgraphs, without=without, removal=Removal.induced).tolist()

    @cached_property
    def _doubts(self) -> Doubts:
        return Doubts(self.sampler, self.effective_size, self.num_samples)

    @cached_property
    def _parts(self) -> list[Parts]:
        """The parts of all instances; nodes are places in the instance."""
        if not same_model(self.sampler, self.model_name):
            raise ModelError(
                "The model was moved or trained on after it was explained, so its parts can no longer be measured. "
                "Explain it again."
            )
        subgraphs = self.estimates.subgraphs
        best = segment_argmax(self._reward, subgraphs.instance, len(self))
        return find_parts(self.sampler.reward, subgraphs[best], self.node_probability, self.sampler.settings.seed)

    def _find_parts(self, i: int) -> Parts:
        """Names the nodes of an instance's parts as the user does."""
        instances, outer = self.sampler.instances, self.sampler.inputs.graphs[i].nodes
        begin, found = int(instances.ptr[i]), self._parts[i]
        node_id = instances.node_id[begin : int(instances.ptr[i + 1])]
        node_id = node_id if outer is None else outer[node_id]
        parts = (replace(part, nodes=tuple(node_id[list(part.nodes)].tolist())) for part in found)
        return replace(found, parts=tuple(parts))

    @cached_property
    def contributions(self) -> Tensor | None:
        """What each node adds to the log-odds of the class or to the value, shape ``[n]``, where a consensus says."""
        reward = self.sampler.reward
        return reward.contributions() if isinstance(reward, ConsensusReward) else None

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
            find_parts=partial(self._find_parts, i),
            doubt=partial(self._doubts.of, i),
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
            **self._contributed(nodes, graph, shown.x.size(0)),
            **inputs.fields(i),
            **arguments,
        )
        explanation._model_args = list(arguments)
        if self.config is not None:
            explanation._model_config = self.config
        return explanation

    def _contributed(self, nodes: slice, graph: InputGraph, size: int) -> dict[str, SparseRows]:
        value = self.contributions
        if value is None:
            return {}
        ids = self.sampler.instances.node_id[nodes]
        return {"node_contributions": _placed(value[nodes].float(), ids, graph.nodes, size)}

    def _rank(self, i: int) -> Sequence[RankedSubgraph]:
        """Lists the different subgraphs of an instance, best first."""
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
        return sorted(found, key=lambda s: (-s.reward, -s.probability, s.nodes))


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
