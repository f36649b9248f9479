"""The ground truth of instances: which of their edges and nodes belong to a motif."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gflowbench.datasets import Benchmark
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
            benchmark: Its graphs carry ``edge_motif`` ``[E]`` and ``motif_id`` ``[N]``.
            inputs: Instances cut out of these graphs.
        """
        instances = inputs.instances
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
