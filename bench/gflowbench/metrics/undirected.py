"""Undirected edges: both directions and all repeats of an edge count once, self loops do not count."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances


@dataclass(frozen=True)
class UndirectedEdges:
    """``p`` undirected edges of ``I`` instances.

    Attributes:
        ends: The two ends as flat node positions, smaller one first, shape ``[2, p]``.
        owner: Instance of each, shape ``[p]``, ascending.
        entry: Directed edge entries that are no self loops, shape ``[q]``.
        pair: Undirected edge of each such entry, shape ``[q]``.
    """

    ends: Tensor
    owner: Tensor
    entry: Tensor
    pair: Tensor

    @classmethod
    def of(cls, instances: Instances) -> UndirectedEdges:
        """Finds the undirected edges of the instances."""
        source, target = instances.edge_index
        entry = torch.nonzero(source != target).flatten()
        low = torch.minimum(source[entry], target[entry])
        high = torch.maximum(source[entry], target[entry])
        total = instances.num_nodes
        key, pair = torch.unique(low * total + high, return_inverse=True)
        ends = torch.stack([key // total, key % total])
        return cls(ends, instances.owner[ends[0]], entry, pair)

    def merge(self, values: Tensor) -> Tensor:
        """Combines values of directed entries ``[e]`` by their maximum, shape ``[p]``."""
        given = values[self.entry]
        merged = torch.zeros(self.owner.numel(), dtype=given.dtype, device=given.device)
        if given.dtype == torch.bool:
            merged[self.pair[given]] = True
            return merged
        return merged.scatter_reduce_(0, self.pair, given, "amax", include_self=False)
