"""What single contributions leave of a value, the residual: it is shared out among nodes alike.

What nodes add is measured one by one, and need not add up to the value: what two of them say together is lost with
either of them, or with neither. So the residual is described by how many nodes of each kind a graph has, with an
intercept, since a value may not begin at zero. Nodes are of a kind that have all their features in common, and weights
are held back to what several graphs ask for. Where that predicts the residual of graphs that were not fitted, nodes are
given what their kind adds to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.segments import segment_sum

RIDGE = 5.0
"""Penalty of the weight of a kind, as one node of it in each of so many graphs."""
_FEWEST, _MOST_KINDS = 2, 256
"""Graphs that a kind has to be in, to be one; and how many kinds there are at most, those in most graphs."""


@dataclass(frozen=True)
class Residual:
    """What nodes of each kind add to a residual.

    Attributes:
        kinds: Raw evidence of the nodes of each kind, shape ``[T, R]``.
        weight: What a node of each kind adds, and last what any node does, shape ``[T + 1]``; empty where nothing does.
    """

    kinds: Tensor = field(default_factory=lambda: torch.zeros(0, 0))
    weight: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.double))

    @property
    def counts(self) -> bool:
        """Whether nodes are given anything."""
        return self.weight.numel() > 0

    def add_to(self, own: Tensor, raw: Tensor) -> Tensor:
        """Adds to own evidence ``[n, 1]`` what nodes of such ``raw`` evidence ``[n, R]`` are given."""
        if not self.counts:
            return own
        every, place = torch.unique(torch.cat([self.kinds, raw.to(self.kinds)]), dim=0, return_inverse=True)
        kind = torch.full((every.size(0),), -1, device=place.device)
        known = self.kinds.size(0)
        kind[place[:known]] = torch.arange(known, device=place.device)
        found = kind[place[known:]]
        given = self.weight[-1] + torch.where(found >= 0, self.weight[found.clamp(min=0)], 0.0)
        return own + given[:, None].to(own)

    def tensors(self) -> dict[str, Tensor]:
        """Returns everything as tensors, for a section of a file."""
        return {"residual": self.weight, "residual_kinds": self.kinds}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Residual:
        """Reads what :meth:`tensors` gave."""
        return cls(tensors["residual_kinds"], tensors["residual"])

    def to(self, device: torch.device | str) -> Residual:
        """Moves everything to ``device``."""
        return replace(self, kinds=self.kinds.to(device), weight=self.weight.to(device))


def find_residual(instances: Instances, value: Tensor, own: Tensor, raw: Tensor, known: Tensor) -> Residual:
    """Finds what nodes of each kind add to the residual, if that is the same in other graphs.

    Args:
        instances: Graphs.
        value: What the model says of each, shape ``[I]``.
        own: What each node adds, shape ``[n, 1]``.
        raw: The raw evidence of nodes that tells kinds apart, shape ``[n, R]``.
        known: Marks the nodes of which it is known what they add, shape ``[n]``.
    """
    number, owner = len(instances), instances.owner
    whole = torch.nonzero(torch.bincount(owner[known], minlength=number) == instances.node_counts).flatten()
    kinds, kind = torch.unique(raw, dim=0, return_inverse=True)
    graphs = torch.unique(torch.stack([kind, owner]), dim=1)[0]
    spread = torch.bincount(graphs, minlength=kinds.size(0))
    common = torch.argsort(spread, descending=True, stable=True)[:_MOST_KINDS]
    shared = common[spread[common] >= _FEWEST]
    if whole.numel() <= _FEWEST or not shared.numel():
        return Residual()
    column = torch.full((kinds.size(0),), -1, device=kind.device)
    column[shared] = torch.arange(shared.numel(), device=kind.device)
    there = torch.nonzero(column[kind] >= 0).flatten()
    count = torch.zeros(number, shared.numel() + 1, dtype=torch.double, device=kind.device)
    count.index_put_((owner[there], column[kind[there]]), count.new_ones(()), accumulate=True)
    count[:, -1] = instances.node_counts.to(count)
    residual = (value.double() - segment_sum(own[:, 0].double(), owner, number))[whole]
    weight, told = _fit(count[whole], residual)
    return Residual(kinds[shared], weight) if told > 0 else Residual()


def _fit(count: Tensor, residual: Tensor) -> tuple[Tensor, float]:
    """Fits the residuals ``[Q]`` of graphs by how many nodes of each kind they have ``[Q, T]``.

    Returns:
        What a node of each kind adds, shape ``[T]``, and the share of the residual of each graph, beyond their mean,
        that all others predict.
    """
    centred, beyond = count - count.mean(dim=0), residual - residual.mean()
    penalty = RIDGE * torch.eye(count.size(1), dtype=count.dtype, device=count.device)
    solved = torch.linalg.solve(centred.t() @ centred + penalty, centred.t())
    weight = solved @ beyond
    # What a fit without one graph misses there follows from the fit to all, and from what the graph counts in it.
    counts = (centred * solved.t()).sum(dim=1) + 1 / residual.numel()
    missed = (beyond - centred @ weight) / (1 - counts)
    usual = float((beyond / (1 - 1 / residual.numel())).square().sum())
    return weight, 1 - float(missed.square().sum()) / usual if usual > 0 else 0.0
