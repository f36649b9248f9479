"""From what was sampled to explanations: everything that is shown of them is computed when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.errors import ModelError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.findings import Certificate, Counterfactual, FeatureContributions, Parts
from gflowexplainer.explanation.ranked import Prediction, RankedPath, RankedSubgraphs
from gflowexplainer.explanation.typed_explanation import TypedExplanation
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.graphs.typed import TypedGraph
from gflowexplainer.inference.counterfactual_search import find_counterfactual
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.inference.feature_shapley import measure_features
from gflowexplainer.inference.options import ExplainOptions
from gflowexplainer.inference.parts import PartsSearch, sampled_sets
from gflowexplainer.inference.paths import ranked_paths
from gflowexplainer.inference.trust import certify, doubts_about
from gflowexplainer.ops.global_state import GLOBAL_STATE
from gflowexplainer.ops.segments import pointers
from gflowexplainer.ops.sparse_rows import MatrixEntries, RowSections, SparseRows
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.storage.identity import model_fingerprint

_LARGEST_LOG = 700.0
_PATHS = 100
"""Paths of a link that are listed."""
_BEGIN = 64
"""Sampled subgraphs that a search for a counterfactual begins with, the most probable ones."""


@dataclass(frozen=True)
class SampledExplanations:
    """Explanations of the ``I`` instances of a sampler, as flat tensors; each is built when it is asked for.

    Masks, lists, parts and certificates are all read from the same ``estimates``. Whatever explanations ask later is
    computed by the method of that name, for the instance at a position.

    Attributes:
        sampler: The sampler.
        estimates: The distribution of every instance.
        error: How far its probabilities are off, in total variation, shape ``[I]``; 0 where exact.
        options: What the call wanted.
    """

    sampler: FlowSampler
    estimates: Estimates
    error: Tensor
    options: ExplainOptions

    def __len__(self) -> int:
        return len(self.sampler.instances)

    # Masks.

    @cached_property
    def node_mask(self) -> Tensor:
        """Probability of each node, shape ``[n]``."""
        return self.estimates.node.float()

    @cached_property
    def edge_mask(self) -> Tensor:
        """Probability that both ends of each edge are inside, of a self loop that its node is, shape ``[e]``."""
        instances = self.sampler.instances
        edge = edge_values(instances, self.estimates.neighbor)
        if instances.has_loops:
            source, target = instances.edge_index
            edge = torch.where(source == target, self.node_mask[source].to(edge), edge)
        return edge.float()

    def mask(self, kind: str) -> MatrixEntries:
        """Returns ``"node"`` or ``"edge"`` masks of all instances."""
        instances, graphs = self.sampler.instances, self.sampler.inputs.graphs
        # Of the nodes of one graph, all have the same.
        shown = [graph.shown or graph for graph in {id(graph): graph for graph in graphs}.values()]
        if kind == "node":
            row, place, value = instances.owner, instances.node_id, self.node_mask
            outer, size = [graph.nodes for graph in graphs], max(graph.x.size(0) for graph in shown)
        else:
            row, place, value = instances.edge_owner, instances.edge_id, self.edge_mask
            outer, size = [graph.edges for graph in graphs], max(graph.edge_index.size(1) for graph in shown)
        # Nodes and edges of an instance stand in the user's order.
        in_order = all(ids is None for ids in outer)
        if not in_order:
            counts = instances.node_counts if kind == "node" else instances.edge_counts
            parts = place.split(counts.tolist())
            place = torch.cat([part if ids is None else ids[part] for part, ids in zip(parts, outer, strict=True)])
        row, column, value = (tensor.to(shown[0].x.device) for tensor in (row, place, value))
        return MatrixEntries(row, column, value, size, in_order)

    # Answers about one instance.

    def subgraphs(self, i: int) -> RankedSubgraphs:
        """Lists the different subgraphs of an instance, the most probable first."""
        rows, members = self._ranked(i)
        inside, names = members >= 0, self._node_ids(i)
        # The evidence of a large value is beyond what its exponential can hold; the order is that of the evidence.
        reward = self._log_reward[rows].clamp(max=_LARGEST_LOG).double().exp().tolist()

        def predict(without: bool) -> list[Prediction]:
            known = self._without if without else self._only
            return [known[row] for row in rows.tolist()]

        nodes = np.where(inside, names[np.where(inside, members - self._bounds[i], 0)], -1)
        return RankedSubgraphs(nodes, self.estimates.probability[rows].tolist(), reward, predict)

    def parts(self, i: int) -> Parts:
        """Returns the parts of an instance."""
        found, names = self._parts[i], self._node_ids(i)
        parts = (replace(part, nodes=tuple(names[list(part.nodes)].tolist())) for part in found)
        return replace(found, parts=tuple(parts))

    def certificate(self, i: int) -> Certificate:
        """Measures what is shown of an instance against every connected subgraph there is."""
        if not self._same_model():
            return Certificate(reason="The model was moved or trained on after it was explained. Explain it again.")
        return certify(self.sampler, self.estimates, i, self.options.certificate_limit)

    def doubts(self, i: int) -> tuple[str, ...]:
        """Says what speaks against the explanation of an instance."""
        return doubts_about(self.sampler.reward, float(self.error[i]), i)

    def counterfactual(self, i: int, **question: Any) -> Counterfactual | None:
        """Finds what would have to go for the prediction to change."""
        self._refuse_another_model()
        samples = [[node for node in row if node >= 0] for row in self._ranked(i)[1][:_BEGIN].tolist()]
        names, first = self._node_ids(i), self._bounds[i]
        return find_counterfactual(self.sampler, i, samples, lambda node: int(names[node - first]), **question)

    def features(self, i: int, **question: Any) -> FeatureContributions:
        """Measures what features of the first subgraph contribute."""
        self._refuse_another_model()
        members = [node for node in self._ranked(i)[1][0].tolist() if node >= 0]
        nodes = self._node_ids(i)[np.array(members) - self._bounds[i]]
        return measure_features(self.sampler, i, members, tuple(nodes.tolist()), **question)

    def paths(self, i: int) -> tuple[RankedPath, ...]:
        """Lists the best paths between both ends of a link."""
        instances, reward = self.sampler.instances, self.sampler.reward
        rows, names, first = self._rows(i), self._node_ids(i), self._bounds[i]
        found = ranked_paths(
            instances,
            i,
            self.estimates.subgraphs[rows],
            self.estimates.probability[rows],
            self.estimates.neighbor,
            _PATHS,
            rate=reward.log_score if isinstance(reward, EvidenceReward) else None,
        )
        edges = self._edges(i)
        edge_of: dict[tuple[int, int], int] = {}
        for edge, ends in zip(
            instances.edge_id[edges].tolist(), instances.edge_index[:, edges].t().tolist(), strict=True
        ):
            edge_of.setdefault(tuple(ends), edge)
        paths = []
        for path, share in found:
            ids = [edge_of[step] if step in edge_of else edge_of[step[::-1]] for step in pairwise(path)]
            paths.append(RankedPath(tuple(int(names[node - first]) for node in path), tuple(ids), share))
        return tuple(paths)

    # What they are computed from.

    def _same_model(self) -> bool:
        """Whether the explained model is where it was, with the weights that it had, by its fingerprint."""
        predictor = self.sampler.predictor
        if any(parameter.device != predictor.device for parameter in predictor.model.parameters()):
            return False
        with GLOBAL_STATE:
            return model_fingerprint(predictor.model) == self.options.model_name

    def _refuse_another_model(self) -> None:
        if not self._same_model():
            raise ModelError(
                "The model was moved or trained on after it was explained, so what it predicts on subgraphs can no "
                "longer be told. Explain it again."
            )

    def _predict(self, *, without: bool) -> list[Prediction]:
        self._refuse_another_model()
        # Whatever the reward measures by, what is shown means one thing: nodes that are gone are gone.
        found = self.sampler.reward.predict(self.estimates.subgraphs, without=without, removal=Removal.induced)
        return list(map(tuple, found.tolist()))

    @cached_property
    def _only(self) -> list[Prediction]:
        """What the model predicts with only each subgraph."""
        return self._predict(without=False)

    @cached_property
    def _without(self) -> list[Prediction]:
        """What the model predicts without each subgraph."""
        return self._predict(without=True)

    @cached_property
    def _parts(self) -> list[Parts]:
        """The parts of all instances; nodes are places in the instance."""
        self._refuse_another_model()
        estimates, sampler = self.estimates, self.sampler
        ranked = torch.cat([self._ranked(i)[0] for i in range(len(self))])
        sampled = sampled_sets(sampler.instances, estimates.subgraphs, ranked)
        return PartsSearch(sampler.reward, sampled, self.node_mask, sampler.settings.seed).run()

    @cached_property
    def _log_reward(self) -> Tensor:
        return self.sampler.reward.log_score(self.estimates.subgraphs)

    @cached_property
    def _sorted(self) -> tuple[Tensor, list[int]]:
        """Rows of the estimates by instance, ``[U]``, and where those of each begin, ``I + 1``."""
        instance = self.estimates.subgraphs.instance
        first = pointers(torch.bincount(instance, minlength=len(self))).tolist()
        return torch.argsort(instance, stable=True), first

    def _rows(self, i: int) -> Tensor:
        """Returns the rows of the estimates that belong to an instance."""
        order, first = self._sorted
        return order[first[i] : first[i + 1]]

    @cached_property
    def _bounds(self) -> list[int]:
        """Where the nodes of each instance begin."""
        return self.sampler.instances.ptr.tolist()

    def _edges(self, i: int) -> slice:
        """Returns where the edges of an instance stand."""
        first = self.sampler.instances.edge_ptr[i : i + 2].tolist()
        return slice(*first)

    def _node_ids(self, i: int) -> np.ndarray:
        """Returns the user's id of every node of an instance."""
        ids, outer = self.sampler.instances.node_id[self._bounds[i] : self._bounds[i + 1]], self._graph(i).nodes
        return (ids if outer is None else outer[ids]).cpu().numpy()

    def _graph(self, i: int) -> InputGraph:
        return self.sampler.inputs.graphs[i]

    def _ranked(self, i: int) -> tuple[Tensor, np.ndarray]:
        """Ranks the subgraphs of an instance, the most probable first; equal ones by their nodes.

        Returns:
            Their rows in the estimates, ``[U]``, and their nodes, ``[U, K]``, ``-1`` behind the last: what is explained
            stands first, then the most probable nodes.
        """
        instances, rows = self.sampler.instances, self._rows(i)
        begin, end = self._bounds[i], self._bounds[i + 1]
        center, place = int(instances.center[i]), np.arange(begin, end)
        ends = [center] if instances.other_end is None else [center, int(instances.other_end[i])]
        probable = self.estimates.node[begin:end].cpu().numpy()
        order = np.lexsort((place, -probable, place != center, ~np.isin(place, ends)))
        members = self.estimates.subgraphs.members[rows].cpu().numpy()
        slots = np.where(members >= 0, np.argsort(order)[np.maximum(members - begin, 0)], place.size)
        slots.sort(axis=1)
        nodes = np.append(place[order], -1)[slots]
        named = np.append(self._node_ids(i)[order], -1)[slots]
        probability = self.estimates.probability[rows].cpu().numpy()
        ranked = np.lexsort((*named.T[::-1], -probability))
        return rows[torch.from_numpy(ranked).to(rows.device)], nodes[ranked]

    # Explanations.

    def build(self, position: int) -> SubgraphExplanation | TypedExplanation:
        """Makes the explanation of one instance."""
        instances, inputs, i = self.sampler.instances, self.sampler.inputs, position
        graph, ids = self._graph(i), self._node_ids(i)
        center, first = int(instances.center[i]), self._bounds[i]
        link = None
        if instances.other_end is not None:
            link = int(ids[center - first]), int(ids[int(instances.other_end[i]) - first])
        distribution = SubgraphDistribution(
            node=int(instances.node_id[center]) if center >= 0 and link is None else None,
            graph=int(inputs.index[i]) if inputs.counted else None,
            link=link,
            connected=instances.joined is None or bool(instances.joined[i]),
            num_samples=self.options.num_samples,
            error=float(self.error[i]),
            left_out=0 if instances.left_out is None else int(instances.left_out[i]),
            prediction_kept=self._kept.get(i),
            model=self.options.model_name,
            source=self,
            position=i,
        )
        if graph.typed is None:
            explanation: Any = SubgraphExplanation.of(distribution, **self._shown(graph, i))
            names = [name for name, value in (graph.shown or graph).arguments.items() if value is not None]
            explanation._model_args = [*names, *(["edge_label_index"] if link else [])]
        else:
            explanation = TypedExplanation.of(distribution, self._shown_by_type(graph.typed, i))
        explanation._model_config = self.options.config
        return explanation

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

    @cached_property
    def _node_values(self) -> dict[str, Tensor]:
        """What is shown of each node by name, ``[n, ...]``: its probability, and what the model loses without it."""
        reward, found = self.sampler.reward, {"node_mask": self.node_mask[:, None]}
        lost = reward.evidence.lost if isinstance(reward, EvidenceReward) else None
        return found if lost is None else found | {"node_contributions": lost.float()}

    def _shown(self, graph: InputGraph, i: int) -> dict[str, Any]:
        """Returns the fields of an explanation of a graph with one type, in the places of the user's graph."""
        instances, shown, edges = self.sampler.instances, graph.shown or graph, self._edges(i)
        nodes, far = slice(self._bounds[i], self._bounds[i + 1]), shown.x.device
        place, edge_place = instances.node_id[nodes], instances.edge_id[edges]
        place = place if graph.nodes is None else graph.nodes[place]
        edge_place = edge_place if graph.edges is None else graph.edges[edge_place]
        values = {name: SparseRows(v[nodes], place, shown.x.size(0)) for name, v in self._node_values.items()}
        values["edge_mask"] = SparseRows(self.edge_mask[edges], edge_place, shown.edge_index.size(1))
        arguments = {name: value for name, value in shown.arguments.items() if value is not None}
        own = {name: value.to(far) for name, value in (values | self.sampler.inputs.fields(i)).items()}
        return {"x": shown.x, "edge_index": shown.edge_index} | own | arguments

    @cached_property
    def _by_type(self) -> tuple[RowSections, RowSections]:
        """What is shown of nodes and of edges by instance and type, of heterogeneous graphs."""
        instances = self.sampler.instances
        graphs = [graph.typed for graph in self.sampler.inputs.graphs if graph.typed is not None]
        first = [list(graph.node_ptr.values()) for graph in graphs]
        nodes = RowSections(self._node_values, instances.owner, instances.node_id, first)
        owner = instances.owner[instances.edge_index[0]]
        first = [list(graph.edge_ptr.values()) for graph in graphs]
        return nodes, RowSections({"edge_mask": self.edge_mask}, owner, instances.edge_id, first)

    def _shown_by_type(self, graph: TypedGraph, i: int) -> dict[Any, dict[str, Any]]:
        """Returns the fields of an explanation by node type or relation, and those of the whole under ``None``."""
        found, (nodes, edges) = graph.stores(), self._by_type
        for t, (node_type, count) in enumerate(graph.node_counts.items()):
            found[node_type] |= nodes.rows(i, t, count)
        for r, (relation, ends) in enumerate(graph.edge_index_dict.items()):
            found[relation] |= edges.rows(i, r, ends.size(1))
        return found | {None: self.sampler.inputs.fields(i) | graph.shared}
