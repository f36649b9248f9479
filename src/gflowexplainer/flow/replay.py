"""Remembers the best subgraphs that each instance has seen, to rebuild them in other orders."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.hashed_random import uniform


class Replay:
    """The ``capacity`` best different subgraphs of each of ``I`` instances.

    Args:
        num_instances: Number ``I`` of instances.
        draws: Subgraphs that one draw gives for each instance; 0 switches the memory off.
        max_nodes: Size bound ``K``.
        device: Where the memory lives.
        capacity: Subgraphs to keep of each instance.
    """

    def __init__(
        self, num_instances: int, draws: int, max_nodes: int, device: torch.device | str, capacity: int = 32
    ) -> None:
        self.draws = draws
        slots = capacity if draws else 0
        self._members = torch.full((num_instances, slots, max_nodes), -1, device=device)
        self._score = torch.full((num_instances, slots), -torch.inf, device=device)

    def add(self, subgraphs: Subgraphs, score: Tensor) -> None:
        """Takes in subgraphs with their log-scores ``[B]``, and lets the worst go."""
        if not self.draws:
            return
        instance = torch.unique(subgraphs.instance)
        row = torch.searchsorted(instance, subgraphs.instance)
        order = torch.argsort(row, stable=True)
        counts = torch.bincount(row, minlength=instance.numel())
        place = torch.arange(len(subgraphs), device=row.device) - (torch.cumsum(counts, 0) - counts)[row[order]]
        width = int(counts.max())
        members = self._members.new_full((instance.numel(), width, subgraphs.members.size(1)), -1)
        scores = self._score.new_full((instance.numel(), width), -torch.inf)
        # A set is the same in whatever order it was built: sort the members.
        members[row[order], place] = subgraphs.members[order].sort(dim=1, descending=True).values
        scores[row[order], place] = score[order].to(scores.dtype)
        members = torch.cat([self._members[instance], members], dim=1)
        scores = torch.cat([self._score[instance], scores], dim=1)
        same = (members[:, :, None] == members[:, None]).all(dim=-1).tril(diagonal=-1).any(dim=2)
        best = torch.where(same, -torch.inf, scores).topk(self._score.size(1), dim=1)
        self._score[instance] = best.values
        self._members[instance] = members.gather(1, best.indices[:, :, None].expand(-1, -1, members.size(2)))

    def draw(self, instance: Tensor, *stream: int) -> Subgraphs:
        """Draws ``draws`` remembered subgraphs of each entry of ``instance``, fewer where fewer are known."""
        if not self.draws:
            empty = instance[:0]
            return Subgraphs(empty, self._members[:0].reshape(0, self._members.size(2)))
        known = torch.isfinite(self._score[instance])
        number = torch.arange(known.size(1), device=known.device)
        noise = uniform(*stream, instance[:, None], number)
        pick = torch.where(known, noise, -1.0).topk(self.draws, dim=1)
        row, column = torch.nonzero(pick.values >= 0, as_tuple=True)
        chosen = instance[row]
        return Subgraphs(chosen, self._members[chosen, pick.indices[row, column]])

    def tensors(self) -> dict[str, Tensor]:
        """Returns the contents, for a checkpoint."""
        return {"members": self._members, "score": self._score} if self.draws else {}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Takes the contents from a checkpoint."""
        if self.draws:
            self._members, self._score = tensors["members"], tensors["score"]
