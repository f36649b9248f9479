"""By which columns the nodes of graphs are told apart: their features, of which some name kinds.

The number of a chemical element names a kind and is no amount: nodes of the numbers 6 and 8 have nothing between them.
So a column that holds a few whole numbers counts as one column for each of them. What is left may still be many
columns; nodes are of few kinds where few directions hold nearly all differences between them, and of none where
they do not, as vectors of words.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAX_KINDS = 16
"""Columns of node evidence that are kept; of more, this many principal components are."""
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
