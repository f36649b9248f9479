"""The ground truth of instances: which of their edges and nodes belong to a motif."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gflowbench.datasets import Benchmark
    from gflowbench.datasets.task_truth import TaskTruth
    from gflowbench.explainers.interface import Subject


@dataclass(frozen=True)
class GroundTruth:
    """The two ground truths of ``I`` instances with ``n`` nodes and ``e`` edges in total.

    Attributes:
        own: Edges of the motif that the explained node or graph belongs to, shape ``[e]``.
        all: Every motif edge in the instance, also of other motifs, shape ``[e]``. At graph level the same.
        node: Nodes of the motif that the explained node or graph belongs to, shape ``[n]``.
    """

    own: Tensor
    all: Tensor
    node: Tensor

    @classmethod
    def of(cls, benchmark: Benchmark, inputs: Subject) -> GroundTruth | None:
        """Reads the ground truth off at the instances; ``None`` where the benchmark has none.

        Args:
            benchmark: It knows the truths of instances, or its graphs carry ``edge_motif`` ``[E]`` and ``motif_id``
                ``[N]``.
            inputs: Instances cut out of these graphs.
        """
        instances = inputs.instances
        if benchmark.truths:
            return cls._of_truths(benchmark.truths, inputs)
        graphs = benchmark.graphs if instances.level == "node" else [benchmark.graphs[i] for i in inputs.index.tolist()]
        if not all("edge_motif" in graph and "motif_id" in graph for graph in graphs):
            return None
        device = instances.device
        if instances.level == "node":
            edge = graphs[0].edge_motif.to(device)[instances.edge_id]
            motif = graphs[0].motif_id.to(device)[instances.node_id]
            belongs = (motif >= 0) & (motif == motif[instances.center][instances.owner])
            return cls(edge & belongs[instances.edge_index].all(dim=0), edge, belongs)
        edge = torch.cat([graph.edge_motif for graph in graphs]).to(device)
        return cls(edge, edge, torch.cat([graph.motif_id for graph in graphs]).to(device) >= 0)

    @classmethod
    def _of_truths(cls, truths: Mapping[int, TaskTruth], inputs: Subject) -> GroundTruth:
        """Marks the nodes of all parts of the truth of each instance, and the edges inside a part."""
        instances = inputs.instances
        node = torch.zeros(instances.num_nodes, dtype=torch.bool, device=instances.device)
        edge = torch.zeros(instances.edge_index.size(1), dtype=torch.bool, device=instances.device)
        for number, index in enumerate(inputs.index.tolist()):
            truth = truths.get(index)
            if truth is None:
                continue
            nodes = slice(int(instances.ptr[number]), int(instances.ptr[number + 1]))
            edges = slice(int(instances.edge_ptr[number]), int(instances.edge_ptr[number + 1]))
            union = truth.union.to(instances.device)
            node[nodes] = union[instances.node_id[nodes]]
            ends = instances.node_id[instances.edge_index[:, edges]]
            for part in truth.parts or (union.nonzero().view(-1).tolist(),):
                members = torch.tensor(part, dtype=torch.long, device=ends.device)
                edge[edges] |= torch.isin(ends, members).all(dim=0) & (ends[0] != ends[1])
        return cls(edge, edge, node)
