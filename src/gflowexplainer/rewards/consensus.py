"""What preserves predictions in general, learned over many instances.

A linear model with few parameters, fitted to what was measured of random subgraphs of all instances at once, says what
a node of some kind and an edge between two kinds add to the log-odds of a prediction, or to its value. What a subgraph
is worth by it is said in :mod:`~gflowexplainer.rewards.consensus_reward`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gflowexplainer.errors import CheckpointError
from gflowexplainer.model.target import Target
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.gradients import GradientShare
from gflowexplainer.rewards.likeness import Likeness

GROWTH = 0.25
"""What subgraphs gain by their size where what single nodes do was measured in the instance itself, and adds up."""


@dataclass(frozen=True)
class Consensus:
    """What preserves predictions in general.

    Attributes:
        basis: Brings raw node evidence to kinds, shape ``[R, D]``.
        weight: Weights of a description, one row for each class and, last, one for all together, ``[C + 1, P]``.
        chosen: By what evidence, and how well it predicts the model.
        trials: Everything that was tried.
        spread: How much log-rewards differ in the instance in the middle of those that were fitted; 0 if not known.
        beside: What the model's loss without each node counts in masks, where the distribution counts 1.
        strongest_loss: What it loses without the one that it needs most, in the instance in the middle.
        gradients: What gradients count in an instance's own evidence.
        cohesion: What it counts that a subgraph holds together, for each node all of whose edges stay inside.
        likeness: What nodes of some kind usually add to a value, which counts in own evidence.
        names: Features of nodes that are names, shape ``[V, 2]``; see :mod:`~gflowexplainer.rewards.kinds`.
    """

    basis: Tensor
    weight: Tensor
    chosen: EvidenceTrial
    trials: tuple[EvidenceTrial, ...] = ()
    spread: float = 0.0
    beside: float = 0.0
    strongest_loss: float = 0.0
    gradients: GradientShare = field(default_factory=GradientShare)
    cohesion: float = 0.0
    likeness: Likeness = field(default_factory=Likeness)
    names: Tensor = field(default_factory=lambda: torch.zeros(0, 2, dtype=torch.double))

    @property
    def uses_own(self) -> bool:
        """Whether what the model loses without each node of the instance itself is part of the evidence."""
        return not self.chosen.evidence.is_shared

    @property
    def growth(self) -> float:
        """What a subgraph gains by its size: evidence counts by the node for 0, as a whole for 1."""
        return GROWTH if self.uses_own else 0.0

    @property
    def needs_own(self) -> bool:
        """Whether the model has to be asked what it loses without each node of an instance."""
        return self.uses_own or self.beside > 0

    def weights_of(self, target: Target) -> Tensor:
        """Returns the weights of each instance, shape ``[I, P]``: those of the class that it holds."""
        if target.label is None:
            return self.weight[-1:].expand(target.prediction.size(0), -1)
        largest = int(target.label if target.label.numel() == 1 else target.label.max())
        if largest >= self.weight.size(0):
            raise CheckpointError(
                f"The consensus knows {self.weight.size(0) - 1} classes, but class {largest} is explained. It belongs "
                "to another model; fit again."
            )
        return self.weight.narrow(0, largest, 1) if target.label.numel() == 1 else self.weight[target.label]

    def tensors(self) -> dict[str, Tensor]:
        """Returns everything as tensors, for a section of a file."""
        rows = torch.tensor([trial.row() for trial in (self.chosen, *self.trials)], dtype=torch.double)
        gradients = self.gradients
        scalars = [self.spread, self.beside, self.strongest_loss, gradients.share, gradients.usual, self.cohesion]
        found = {"basis": self.basis, "weight": self.weight, "trials": rows}
        found["numbers"] = torch.tensor(scalars, dtype=torch.double)
        if self.gradients.share:
            found["blank"] = self.gradients.baseline
        if self.likeness.counts:
            found |= self.likeness.tensors()
        return found | ({"names": self.names} if self.names.numel() else {})

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Consensus:
        """Reads what :meth:`tensors` gave."""
        try:
            chosen, *trials = (EvidenceTrial.from_row(row) for row in tensors["trials"].tolist())
            basis, weight = tensors["basis"], tensors["weight"]
            if basis.dim() != 2 or weight.dim() != 2:
                raise ValueError(f"basis {tuple(basis.shape)} and weights {tuple(weight.shape)} do not fit")
            spread, beside, strongest_loss, share, usual, cohesion = tensors["numbers"].tolist()
            gradients = GradientShare(share, usual, tensors["blank"]) if share else GradientShare()
            consensus = cls(basis, weight, chosen, tuple(trials), spread, beside, strongest_loss, gradients, cohesion)
            if "likeness" in tensors:
                consensus = replace(consensus, likeness=Likeness.from_tensors(tensors))
            return replace(consensus, names=tensors["names"].reshape(-1, 2)) if "names" in tensors else consensus
        except (KeyError, ValueError, IndexError, RuntimeError, TypeError) as error:
            raise CheckpointError(
                f"The file holds no consensus reward, or one of another version ({error})."
            ) from error

    def to(self, device: torch.device | str) -> Consensus:
        """Moves the weights to ``device``."""
        if self.basis.device == self.weight.device == torch.device(device):
            return self
        gradients = replace(self.gradients, baseline=self.gradients.baseline.to(device))
        basis, weight, names = (tensor.to(device) for tensor in (self.basis, self.weight, self.names))
        likeness = self.likeness.to(device)
        return replace(self, basis=basis, weight=weight, gradients=gradients, likeness=likeness, names=names)
