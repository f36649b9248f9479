"""By what nodes are told apart: what the model makes of them, and few features, of which some name kinds.

The number of a chemical element names a kind and is no amount: nodes of the numbers 6 and 8 have nothing between them.
So a column that holds a few whole numbers counts as one column for each of them. What is left may still be many
columns; nodes are of few kinds where few directions hold nearly all differences between them, and of none where
they do not, as vectors of words.
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
_NEARLY = 0.9
"""Share of the variance of features that so many components must hold."""
_EACH, _WIDEST = 4, 1024
"""Nodes that each column must have, as fewer never show many directions, and columns beyond which nobody looks."""
_FARTHEST = 256
"""Whole numbers further apart than this are amounts."""


def find_categories(x: Tensor) -> Tensor:
    """Finds the whole numbers that name kinds of nodes, as pairs of column and value, shape ``[V, 2]``.

    They are those of columns of features ``[n, F]`` that hold nothing but whole numbers, three or more different ones
    and at most :data:`MAX_KINDS`.
    """
    if not x.numel() or x.layout != torch.strided:
        return torch.zeros(0, 2, dtype=torch.double, device=x.device)
    spread = x.amax(dim=0).double() - x.amin(dim=0).double()
    whole = (x == x.round()).all(dim=0)
    found = []
    for column in torch.nonzero(whole & (spread >= 2) & (spread < _FARTHEST)).flatten().tolist():
        value = torch.unique(x[:, column].double())
        if 3 <= value.numel() <= MAX_KINDS:
            found.append(torch.stack([torch.full_like(value, column), value], dim=1))
    return torch.cat(found) if found else torch.zeros(0, 2, dtype=torch.double, device=x.device)


def one_hot(x: Tensor, names: Tensor) -> Tensor:
    """Returns features ``[n, F]`` with an indicator for each of the ``names`` ``[V, 2]`` in the place of their columns.

    The columns that are left come first, shape ``[n, F - C + V]`` where ``C`` columns have names.
    """
    if not names.numel():
        return x
    named = names[:, 0].long()
    amount = torch.ones(x.size(1), dtype=torch.bool, device=x.device).index_fill(0, named, value=False)
    x = x.double()
    return torch.cat([x[:, amount], (x[:, named] == names[:, 1]).double()], dim=1)


def has_few_kinds(x: Tensor, names: Tensor) -> bool:
    """Returns whether nodes with such features ``[n, F]``, of which some are ``names`` ``[V, 2]``, are of few kinds."""
    if x.size(1) <= MAX_KINDS:
        return True
    if x.layout != torch.strided or x.size(1) > _WIDEST:
        return False
    centred = one_hot(x, names).double()
    if x.size(0) < _EACH * centred.size(1):
        return False
    centred = centred - centred.mean(dim=0)
    variance = torch.linalg.eigvalsh(centred.t() @ centred).clamp(min=0)
    return bool(variance[-MAX_KINDS:].sum() >= _NEARLY * variance.sum())


def few_features(x: Tensor, names: Tensor) -> Tensor | None:
    """Returns features ``[n, F]`` with indicators for their ``names``, where nodes are of few kinds by them."""
    return one_hot(x, names).double() if has_few_kinds(x, names) else None


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
    """How nodes are told apart: sources of columns, and the few directions that each is brought to.

    Around nodes a source is what the model predicts at each of them, in graphs what it embeds each of them in; few
    features are another one, of nodes by whether they are neighbours of the explained one.

    Attributes:
        names: Features that name something, as pairs of column and value, shape ``[V, 2]``.
        basis: Directions of each source, by its name, each ``[R, D]``; columns stand in the order of these names.
        spread: Spread of the nodes along these, by its name, each ``[D]``.
    """

    names: Tensor
    basis: Mapping[str, Tensor]
    spread: Mapping[str, Tensor]

    @classmethod
    def of(cls, inputs: TaskInputs) -> Kinds:
        """Finds out by what the nodes of some instances are told apart."""
        instances = inputs.instances
        plain = instances.level == "graph" and instances.num_types == 1
        names = find_categories(instances.rows() if plain else instances.x[:0])
        basis, spread = {}, {}
        rows = instances.rows()
        for name, columns in sources(inputs, names).items():
            if name == "features" and not bool((rows != rows[:1]).any()):
                continue
            found = directions(columns)
            if found.size(1):
                along = (columns @ found).std(dim=0, correction=0)
                basis[name], spread[name] = found, torch.where(along > 1e-9, along, 1.0)
        return cls(names, basis, spread)

    def columns(self, inputs: TaskInputs) -> Tensor:
        """Returns how much each node is of each kind, shape ``[n, D]``, in spreads and within a few of them."""
        given = sources(inputs, self.names)
        parts = [torch.zeros(inputs.instances.num_nodes, 0, dtype=torch.double, device=inputs.instances.device)]
        for name, basis in sorted(self.basis.items()):
            if name not in given or given[name].size(1) != basis.size(0):
                have = given[name].size(1) if name in given else 0
                raise ConfigError(
                    f"Nodes were told apart by {basis.size(0)} columns of '{name}', but these have {have}. "
                    "It belongs to another model or other features; fit again."
                )
            parts.append((given[name] @ basis / self.spread[name]).clamp(-_FAR, _FAR))
        return torch.cat(parts, dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """Returns everything as tensors, for a section of a file."""
        found = {"names": self.names}
        for name in self.basis:
            found |= {f"basis.{name}": self.basis[name], f"spread.{name}": self.spread[name]}
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Kinds:
        """Reads what :meth:`tensors` gave."""
        names = sorted(name.removeprefix("basis.") for name in tensors if name.startswith("basis."))
        basis = {name: tensors[f"basis.{name}"] for name in names}
        spread = {name: tensors[f"spread.{name}"] for name in names}
        for name in names:
            if basis[name].dim() != 2 or spread[name].shape != basis[name].shape[1:]:
                raise ValueError(f"directions of '{name}' {tuple(basis[name].shape)} {tuple(spread[name].shape)}")
        return cls(tensors["names"].reshape(-1, 2), basis, spread)

    def to(self, device: torch.device | str) -> Kinds:
        """Moves everything to ``device``."""
        basis, spread = ({name: t.to(device) for name, t in of.items()} for of in (self.basis, self.spread))
        return Kinds(self.names.to(device), basis, spread)


def sources(inputs: TaskInputs, names: Tensor) -> dict[str, Tensor]:
    """Returns the columns that the nodes of some instances can be told apart by, each ``[n, R]``, by name."""
    instances, found = inputs.instances, dict[str, Tensor]()
    if instances.num_types > 1 or instances.other_end is not None:
        # The first columns of typed nodes hold their type.
        x, types = instances.rows().double(), instances.num_types
        found["features"] = x if x.size(1) < MAX_KINDS else x[:, : types if types > 1 else 0]
    elif instances.level == "graph":
        few = few_features(instances.rows(), names)
        found |= {} if few is None else {"features": few}
        found |= {} if inputs.embedding is None else {"embedding": inputs.embedding.double()}
    elif instances.x.size(1) <= MAX_KINDS and instances.x.layout == torch.strided:
        near = torch.zeros(instances.num_nodes, 1, dtype=torch.bool, device=instances.device)
        near[instances.neighbors_of(instances.roots)[1]] = True
        far = ~near
        far[instances.roots] = near[instances.roots] = False
        x = instances.rows().double()
        found["features"] = torch.cat([x * near, x * far], dim=1)
    if inputs.node_prediction is not None:
        found["prediction"] = inputs.node_prediction.double()
    return found
