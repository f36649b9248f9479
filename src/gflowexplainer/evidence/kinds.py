"""How nodes are told apart: by their features, and by what the model makes of them.

Around nodes of a classifier, what the model makes of a node is its prediction there; elsewhere it is the embedding.
Features say what a node is by itself, embeddings also what it is part of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.steering import MAX_KINDS

_FAR = 3.0
"""Spreads beyond which a node is no more of a kind: a heavy tail would otherwise be all that is learned."""
_WIDEST = 128
"""Features beyond which they name single nodes, not kinds."""


def directions(x: Tensor) -> Tensor:
    """Finds at most :data:`MAX_KINDS` directions that columns ``[n, R]`` differ along, shape ``[R, D]``.

    Columns that vary are kept as they are, if they are few; of more, the principal components are taken.
    """
    centred = x - x.mean(dim=0)
    varies = centred.abs().amax(dim=0) > 1e-9
    basis = torch.eye(x.size(1), dtype=torch.double, device=x.device)[:, varies]
    if basis.size(1) <= MAX_KINDS:
        return basis
    _, found = torch.linalg.eigh(centred.t() @ centred)
    basis = found[:, -MAX_KINDS:].flip(1)
    # A sign of its own, so that the same nodes give the same directions.
    largest = basis.gather(0, basis.abs().argmax(dim=0, keepdim=True))
    return basis * torch.where(largest < 0, -1.0, 1.0)


@dataclass(frozen=True)
class Kinds:
    """The few directions along which nodes are told apart.

    Attributes:
        basis: Directions, shape ``[R, D]``.
        spread: Spread of the nodes along each, shape ``[D]``.
    """

    basis: Tensor
    spread: Tensor

    @classmethod
    def of(cls, seen: Tensor) -> Kinds:
        """Finds out along what nodes with the numbers ``seen`` ``[n, R]`` differ."""
        basis = directions(seen)
        along = seen @ basis
        spread = (along - along.mean(dim=0)).square().mean(dim=0).sqrt()
        return cls(basis, torch.where(spread > 1e-9, spread, 1.0))

    def columns(self, seen: Tensor) -> Tensor:
        """Returns how much each node is of each kind, shape ``[n, D]``, in spreads and within a few of them."""
        if seen.size(1) != self.basis.size(0):
            raise ConfigError(
                f"Nodes were told apart by {self.basis.size(0)} numbers, but these have {seen.size(1)}. "
                "They belong to another model or other features; fit again."
            )
        return (seen @ self.basis / self.spread).clamp(-_FAR, _FAR)

    def tensors(self) -> dict[str, Tensor]:
        """Returns everything as tensors, for a section of a file."""
        return {"basis": self.basis, "spread": self.spread}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Kinds:
        """Reads what :meth:`tensors` gave."""
        basis, spread = tensors["basis"], tensors["spread"]
        if basis.dim() != 2 or spread.shape != basis.shape[1:]:
            raise ValueError(f"directions {tuple(basis.shape)} {tuple(spread.shape)}")
        return cls(basis, spread)

    def to(self, device: torch.device | str) -> Kinds:
        """Moves everything to ``device``."""
        return Kinds(self.basis.to(device), self.spread.to(device))


def descriptions(inputs: TaskInputs) -> list[Tensor]:
    """Lists what the nodes of some instances can be told apart by, each of shape ``[n, R]``.

    The features come first. They may be too many or none, and the model need not show what it makes of nodes.
    """
    instances = inputs.instances
    x = instances.rows() if instances.x.layout == torch.strided else instances.x.new_zeros(instances.num_nodes, 0)
    # The first columns of typed nodes hold their type.
    features = x if x.size(1) <= _WIDEST else x[:, : instances.num_types if instances.num_types > 1 else 0]
    made = inputs.node_prediction if inputs.target.label is not None else None
    if made is None and instances.other_end is None:
        made = inputs.embedding
    return [features.double()] + ([] if made is None else [made.double()])
