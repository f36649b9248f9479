"""From what was sampled to explanations: on demand, everything that is shown of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.explain import ModelConfig

from gflowexplainer.choices import Removal
from gflowexplainer.errors import ModelError
from gflowexplainer.explanation.certificate import PendingCertificate
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.parts import Parts
from gflowexplainer.explanation.ranked_subgraphs import (
    Prediction,
    RankedPath,
    RankedSubgraph,
    SubgraphDistribution,
    SubgraphPredictions,
)
from gflowexplainer.explanation.studies import Studies
from gflowexplainer.explanation.typed_explanation import TypedExplanation
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.typed import TypedGraph
from gflowexplainer.inference.certify import certify, same_model
from gflowexplainer.inference.doubts import Doubts
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.inference.instance_study import InstanceStudy
from gflowexplainer.inference.masks import Masks
from gflowexplainer.inference.parts import PartsSearch, sampled_sets
from gflowexplainer.inference.paths import ranked_paths
from gflowexplainer.ops.segments import pointers
from gflowexplainer.ops.sparse_rows import MatrixEntries, RowSections, SparseRows
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.sampler import FlowSampler

_LARGEST_LOG = 700.0


class _Bounds(NamedTuple):
    """Where nodes and edges of instances begin, each ``[I + 1]``, and their explained nodes ``[I]``, as numbers."""

    node: list[int]
    edge: list[int]
    center: list[int]


@dataclass(frozen=True)
class SampledExplanations:
    """Explanations of the ``I`` instances of a sampler, as flat tensors; each is built when it is asked for.

    Attributes:
        sampler: The trained sampler.
        estimates: What is shown: probabilities of subgraphs, nodes and edges.
        error: How far the probabilities are off in each instance, in total variation, shape ``[I]``; 0 where exact.
        num_samples: Particles of each size, or sampled subgraphs, of each.
        certificate_limit: Connected subgraphs up to which a certificate is computed.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
    """

    sampler: FlowSampler
    estimates: Estimates
    error: Tensor
    num_samples: int
    certificate_limit: int
    model_name: str
    config: ModelConfig | None = None

    def __len__(self) -> int:
        return len(self.sampler.instances)

    @cached_property
    def masks(self) -> Masks:
        """Probabilities of nodes and edges."""
        return Masks(self.sampler, self.estimates)

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
        return Doubts(self.sampler, self.error)

    @cached_property
    def _parts(self) -> list[Parts]:
        """The parts of all instances; nodes are places in the instance."""
        if not same_model(self.sampler, self.model_name):
            raise ModelError(
                "The model was moved or trained on after it was explained, so its parts can no longer be measured. "
                "Explain it again."
            )
        instances, subgraphs = self.sampler.instances, self.estimates.subgraphs
        probability = self.estimates.probability
        sampled = sampled_sets(instances, subgraphs, probability)
        return PartsSearch(self.sampler.reward, sampled, self.masks.node, self.sampler.settings.seed).run()

    def _find_parts(self, i: int) -> Parts:
        """Names the nodes of an instance's parts as the user does."""
        found, name = self._parts[i], self._namer(i)
        node_id = self.sampler.instances.node_id[self._nodes(i)].tolist()
        parts = (replace(part, nodes=tuple(name(node_id[node]) for node in part.nodes)) for part in found)
        return replace(found, parts=tuple(parts))

    @cached_property
    def contributions(self) -> Tensor | None:
        """What the model loses of its log-odds or value without each node, shape ``[n]``, where that was measured."""
        reward = self.sampler.reward
        return reward.lost if isinstance(reward, EvidenceReward) else None

    @cached_property
    def _log_reward(self) -> Tensor:
        return self.sampler.reward.log_score(self.estimates.subgraphs)

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor]:
        """Rows of ``estimates.subgraphs`` by instance, and where those of each begin, ``[U]`` and ``[I + 1]``."""
        instance = self.estimates.subgraphs.instance
        return torch.argsort(instance, stable=True), pointers(torch.bincount(instance, minlength=len(self)))

    @cached_property
    def _bounds(self) -> _Bounds:
        instances = self.sampler.instances
        return _Bounds(instances.ptr.tolist(), instances.edge_ptr.tolist(), instances.center.tolist())

    def _nodes(self, i: int) -> slice:
        """Returns where the nodes of an instance stand."""
        return slice(self._bounds.node[i], self._bounds.node[i + 1])

    def _edges(self, i: int) -> slice:
        """Returns where the edges of an instance stand."""
        return slice(self._bounds.edge[i], self._bounds.edge[i + 1])

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

    def mask(self, kind: str) -> MatrixEntries:
        """Returns ``"node"`` or ``"edge"`` masks; see :meth:`Masks.entries`."""
        return self.masks.entries(kind)

    def build(self, position: int) -> SubgraphExplanation | TypedExplanation:
        """Makes the explanation of one instance."""
        instances, inputs, i = self.sampler.instances, self.sampler.inputs, position
        graph, center = inputs.graphs[i], self._bounds.center[i]
        name = int(instances.node_id[center]) if center >= 0 and instances.other_end is None else None
        kind = None if name is None or graph.typed is None else graph.typed.name(name)
        compute = partial(
            certify,
            self.sampler,
            self.estimates,
            i,
            self.certificate_limit,
            self.model_name,
        )
        distribution = SubgraphDistribution(
            rank=partial(self._rank, i),
            node=name if kind is None else kind[1],
            num_samples=self.num_samples,
            error=float(self.error[i]),
            certificate=PendingCertificate(compute),
            left_out=0 if instances.left_out is None else int(instances.left_out[i]),
            prediction_kept=self._kept.get(i),
            node_type=None if kind is None else kind[0],
            graph=int(inputs.index[i]) if inputs.counted else None,
            **self._link(i),
            find_parts=partial(self._find_parts, i),
            doubt=lambda: self._doubts.of(i),
        )
        nodes, edges = self._nodes(i), self._edges(i)
        if graph.typed is not None:
            return self._build_typed(distribution, graph.typed, i)
        shown = graph.shown or graph
        size, far = shown.x.size(0), shown.x.device
        arguments = {name: value for name, value in shown.arguments.items() if value is not None}
        explanation = SubgraphExplanation.of(
            distribution,
            x=shown.x,
            edge_index=shown.edge_index,
            node_mask=_placed(self.masks.node[nodes, None], instances.node_id[nodes], graph.nodes, size).to(far),
            edge_mask=_placed(
                self.masks.edge[edges], instances.edge_id[edges], graph.edges, shown.edge_index.size(1)
            ).to(far),
            **{name: value.to(far) for name, value in self._contributed(nodes, graph, size).items()},
            **{name: value.to(far) for name, value in inputs.fields(i).items()},
            **arguments,
        )
        explanation._model_args = [*arguments, *(["edge_label_index"] if distribution.link else [])]
        explanation._studies = Studies(self._study(i, distribution), model=self.model_name)
        if self.config is not None:
            explanation._model_config = self.config
        return explanation

    @cached_property
    def _by_type(self) -> tuple[RowSections, RowSections]:
        """Masks of nodes and of edges by instance and type, of heterogeneous graphs."""
        instances = self.sampler.instances
        graphs = [graph.typed for graph in self.sampler.inputs.graphs if graph.typed is not None]
        masks = {"node_mask": self.masks.node[:, None]}
        if self.contributions is not None:
            masks["node_contributions"] = self.contributions.float()
        first = [list(graph.node_ptr.values()) for graph in graphs]
        nodes = RowSections(masks, instances.owner, instances.node_id, first)
        owner = instances.owner[instances.edge_index[0]]
        first = [list(graph.edge_ptr.values()) for graph in graphs]
        return nodes, RowSections({"edge_mask": self.masks.edge}, owner, instances.edge_id, first)

    def _build_typed(self, distribution: SubgraphDistribution, graph: TypedGraph, i: int) -> TypedExplanation:
        """Makes the explanation of one instance of a heterogeneous graph."""
        by_type = graph.stores()
        nodes, edges = self._by_type
        for t, (node_type, count) in enumerate(graph.node_counts.items()):
            by_type[node_type] |= nodes.rows(i, t, count)
        for r, (relation, ends) in enumerate(graph.edge_index_dict.items()):
            by_type[relation] |= edges.rows(i, r, ends.size(1))
        explanation = TypedExplanation.of(distribution, by_type, self.sampler.inputs.fields(i) | graph.shared)
        if self.config is not None:
            explanation._model_config = self.config
        return explanation

    def _link(self, i: int) -> dict[str, Any]:
        """Returns what the explanation of a link knows of it; nothing for nodes and graphs."""
        instances = self.sampler.instances
        if instances.other_end is None or instances.joined is None:
            return {}
        name = self._namer(i)
        ends = self._bounds.center[i], int(instances.other_end[i])
        link = tuple(name(int(instances.node_id[end])) for end in ends)
        return {"link": link, "connected": bool(instances.joined[i]), "find_paths": partial(self._paths, i)}

    def _namer(self, i: int) -> Callable[[int], Any]:
        """Returns how nodes of the graph of an instance are named."""
        graph = self.sampler.inputs.graphs[i]
        if graph.typed is not None:
            return graph.typed.name
        outer = graph.nodes
        return (lambda node: node) if outer is None else lambda node: int(outer[node])

    def _paths(self, i: int, k: int) -> list[RankedPath]:
        """Lists the ``k`` best paths between both ends of a link."""
        instances, (order, first) = self.sampler.instances, self._rows
        rows = order[int(first[i]) : int(first[i + 1])]
        estimates, name = self.estimates, self._namer(i)
        reward = self.sampler.reward
        found = ranked_paths(
            instances,
            i,
            estimates.subgraphs[rows],
            estimates.probability[rows],
            estimates.neighbor,
            k,
            rate=reward.log_score if isinstance(reward, EvidenceReward) else None,
        )
        edges = self._edges(i)
        ends = instances.edge_index[:, edges].t().tolist()
        edge_of: dict[tuple[int, int], int] = {}
        for edge, (source, target) in zip(instances.edge_id[edges].tolist(), ends, strict=True):
            edge_of.setdefault((source, target), edge)
        typed = self.sampler.inputs.graphs[i].typed
        paths = []
        for path, share in found:
            steps = list(pairwise(path))
            ids = [edge_of[step] if step in edge_of else edge_of[step[::-1]] for step in steps]
            named = tuple(ids) if typed is None else tuple(typed.name_edge(edge) for edge in ids)
            paths.append(RankedPath(tuple(name(int(instances.node_id[node])) for node in path), named, share))
        return paths

    def _contributed(self, nodes: slice, graph: InputGraph, size: int) -> dict[str, SparseRows]:
        value = self.contributions
        if value is None:
            return {}
        ids = self.sampler.instances.node_id[nodes]
        return {"node_contributions": _placed(value[nodes].float(), ids, graph.nodes, size)}

    def _study(self, i: int, distribution: SubgraphDistribution) -> InstanceStudy:
        """Returns what counterfactuals and contributions of features are computed by."""
        node_id, namer = self.sampler.instances.node_id, self._namer(i)

        def name(node: int) -> int:
            return int(namer(int(node_id[node])))

        return InstanceStudy(self.sampler, i, lambda: [s.nodes for s in distribution.subgraphs], name, self.model_name)

    def _rank(self, i: int) -> Sequence[RankedSubgraph]:
        """Lists the different subgraphs of an instance, the most probable first."""
        instances, (order, first) = self.sampler.instances, self._rows
        rows = order[int(first[i]) : int(first[i + 1])]
        nodes = self._nodes(i)
        begin, end = nodes.start, nodes.stop
        # Inside a subgraph what is explained stands first, then the most probable nodes.
        center, place = self._bounds.center[i], np.arange(begin, end)
        ends = [center] if instances.other_end is None else [center, int(instances.other_end[i])]
        probable = self.estimates.node[begin:end].cpu().numpy()
        node_at = np.lexsort((place, -probable, place != center, ~np.isin(place, ends)))
        members = self.estimates.subgraphs.members[rows].cpu().numpy()
        slots = np.where(members >= 0, np.argsort(node_at)[np.maximum(members - begin, 0)], place.size)
        slots.sort(axis=1)
        name, node_id = self._namer(i), instances.node_id[begin:end].cpu().numpy()[node_at].tolist()
        name_at = [name(node) for node in node_id].__getitem__
        columns = (
            rows.tolist(),
            slots.tolist(),
            (members >= 0).sum(axis=1).tolist(),
            self.estimates.probability[rows].tolist(),
            self._log_reward[rows].tolist(),
        )
        found = []
        for row, own, size, share, log_reward in zip(*columns, strict=True):
            named = tuple(map(name_at, own[:size]))
            # The evidence of a large value is beyond what its exponential can hold; the order is that of the evidence.
            reward = math.exp(min(log_reward, _LARGEST_LOG))
            found.append(RankedSubgraph(named, share, reward, self.predictions, row))
        return sorted(found, key=lambda subgraph: (-subgraph.probability, subgraph.nodes))


def _placed(values: Tensor, place: Tensor, outer: Tensor | None, size: int) -> SparseRows:
    """Puts probabilities ``[k, ...]`` into their places in the user's graph, zero elsewhere, shape ``[size, ...]``."""
    return SparseRows(values, place if outer is None else outer[place], size)
