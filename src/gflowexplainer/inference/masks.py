"""The masks of many explanations at once: the probability of each node and each edge, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.estimates import Estimates
from gflowexplainer.ops.sparse_rows import MatrixEntries
from gflowexplainer.sampler import FlowSampler


@dataclass(frozen=True)
class Masks:
    """Probabilities of the ``n`` nodes and ``e`` edges of the instances of a sampler.

    Attributes:
        sampler: What was sampled from.
        estimates: The distribution.
    """

    sampler: FlowSampler
    estimates: Estimates

    @cached_property
    def node(self) -> Tensor:
        """Probability of each node, shape ``[n]``."""
        return self.estimates.node.clamp(0, 1).float()

    @cached_property
    def edge(self) -> Tensor:
        """Probability that both ends of each edge are inside, of a self loop that its node is, shape ``[e]``."""
        instances = self.sampler.instances
        edge = edge_values(instances, self.estimates.neighbor)
        if instances.has_loops:
            source, target = instances.edge_index
            edge = torch.where(source == target, self.node[source].to(edge), edge)
        return edge.clamp(0, 1).float()

    def entries(self, kind: str) -> MatrixEntries:
        """Returns ``"node"`` or ``"edge"`` masks."""
        instances, graphs = self.sampler.instances, self.sampler.inputs.graphs
        # Of the nodes of one graph, all have the same.
        shown = [graph.shown or graph for graph in {id(graph): graph for graph in graphs}.values()]
        if kind == "node":
            row, place, value = instances.owner, instances.node_id, self.node
            outer, size = [graph.nodes for graph in graphs], max(graph.x.size(0) for graph in shown)
        else:
            row, place, value = instances.edge_owner, instances.edge_id, self.edge
            outer, size = [graph.edges for graph in graphs], max(graph.edge_index.size(1) for graph in shown)
        # Nodes and edges of an instance stand in the user's order.
        in_order = all(ids is None for ids in outer)
        if not in_order:
            counts = instances.node_counts if kind == "node" else instances.edge_counts
            parts = place.split(counts.tolist())
            place = torch.cat([part if ids is None else ids[part] for part, ids in zip(parts, outer, strict=True)])
        row, column, value = (tensor.to(shown[0].x.device) for tensor in (row, place, value))
        return MatrixEntries(row, column, value, size, in_order)
