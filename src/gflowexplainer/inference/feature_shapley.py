"""Contributions of features inside the explained subgraph, measured on the model as Shapley values.

A feature is taken away by giving it its reference value at the nodes (or edges) of the subgraph; everything else stays
as it is. The reference value is the user's, or the mean over the instance; of a feature that is only ever 0 or 1 it is
the more frequent of both, so that a word is removed by not being there. Whole numbers that name something, as those of
an embedding do, have no mean: there it is the most frequent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError, check_counts
from gflowexplainer.explanation.feature_contributions import FeatureContributions
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.changed_inputs import change_rows, predict_changed
from gflowexplainer.inference.shapley_values import shapley_values
from gflowexplainer.model.adapter import ModelAdapter
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.sampler import FlowSampler

_SAME = 1e-9


def measure_features(
    sampler: FlowSampler,
    position: int,
    members: Sequence[int],
    nodes: tuple[Any, ...],
    *,
    of: str = "x",
    reference: Any = None,
    each: bool = False,
    evaluations: int = 2048,
) -> FeatureContributions:
    """Measures what features inside a subgraph contribute to the explained class or value.

    Args:
        sampler: The sampler that has explained the instance.
        position: The instance.
        members: Flat positions of the nodes of the subgraph.
        nodes: The same by the user's names.
        of: ``"x"``, or the name of an argument of the model with one row a node or an edge.
        reference: Values that stand for "not there": a number, or one a feature.
        each: Whether every entry of the subgraph is measured by itself, not every feature.
        evaluations: Combinations of features that are evaluated, about; all of them where they are fewer.
    """
    check_counts(evaluations=evaluations)
    instances = sampler.instances
    one = instances.select(torch.tensor([position], device=instances.device))
    first = int(instances.ptr[position])
    inside = torch.zeros(one.num_nodes, dtype=torch.bool, device=one.device)
    inside[[member - first for member in members]] = True
    ids, values, rows = _table(one, of, inside)
    whole = of == "x" and isinstance(sampler.predictor.model, ModelAdapter) and sampler.predictor.model.form.dtype
    given = values.mode(dim=0).values if whole and reference is None else _reference(reference, values)
    differs = (values[rows] - given).abs() > _SAME
    row, column = torch.nonzero(differs, as_tuple=True)
    player = _players(row, column, each)
    count = int(player.max()) + 1 if player.numel() else 0
    measured, order = ids[rows].sort()
    label = None if sampler.inputs.target.label is None else int(sampler.inputs.target.label[position])

    def play(coalition: Tensor) -> Tensor:
        here = torch.cat(
            [coalition.to(one.device), torch.ones(len(coalition), 1, dtype=torch.bool, device=one.device)], 1
        )
        which = torch.full_like(differs, -1, dtype=torch.long)
        which[row, column] = player
        own = values[rows]

        def change(copies: Instances, number: Tensor) -> Instances:
            def rewrite(owner: Tensor, id_: Tensor, old: Tensor) -> Tensor:
                position, there = find_sorted(measured, id_)
                hit = torch.nonzero(there).flatten()
                at = order[position[hit]]
                kept = here[number[owner[hit]][:, None], which[at]]
                new = old.clone()
                changed = torch.where(kept, own[at], given.expand_as(own)[at])
                new[hit] = changed.reshape(new[hit].shape).to(new.dtype)
                return new

            return change_rows(copies, of, rewrite)

        prediction = predict_changed(sampler.predictor, one, len(coalition), change)
        return prediction[:, 0 if label is None else label]

    found = shapley_values(count, play, evaluations=evaluations)
    single = found.value.to(one.device)
    entry = single[player] if each else torch.zeros(0, dtype=torch.double)
    columns = torch.zeros(values.size(1), dtype=torch.double, device=one.device)
    entries: tuple[tuple[int, int, float], ...] = ()
    if each:
        columns.index_add_(0, column, entry)
        entries = tuple(
            (int(ids[rows[r]]), c, v) for r, c, v in zip(row.tolist(), column.tolist(), entry.tolist(), strict=True)
        )
    elif count:
        columns[torch.unique(column)] = single
    return FeatureContributions(
        of=of,
        nodes=nodes,
        columns=tuple(columns.tolist()),
        rows=entries,
        error=float(found.error.max()) if count else 0.0,
        whole=found.whole,
        bare=found.bare,
        evaluations=found.evaluations,
    )


def _table(one: Instances, of: str, inside: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ids ``[r]`` and values ``[r, F]`` of what is measured, and which of its rows lie inside the subgraph."""
    if of == "x" or of in one.node_arguments:
        values = one.rows() if of == "x" else one.node_arguments[of]
        ids, rows = one.node_id, torch.nonzero(inside).flatten()
    elif of in one.edge_arguments:
        source, target = one.edge_index
        values, ids, rows = (
            one.edge_arguments[of],
            one.edge_id,
            torch.nonzero(inside[source] & inside[target]).flatten(),
        )
    else:
        there = ", ".join(repr(known) for known in ("x", *one.node_arguments, *one.edge_arguments))
        raise ConfigError(f"The model takes no {of!r} with one row a node or an edge. There are {there}.")
    if not values.is_floating_point():
        raise ConfigError(f"'{of}' holds {values.dtype}, which has no reference value. Only numbers can be measured.")
    return ids, values.reshape(values.size(0), -1), rows


def _reference(given: Any, values: Tensor) -> Tensor:
    """Returns the reference value of each feature, shape ``[F]``."""
    width = values.size(1)
    if given is None:
        binary = ((values == 0) | (values == 1)).all(dim=0)
        mean = values.mean(dim=0)
        return torch.where(binary, (mean > 0.5).to(mean), mean)
    try:
        reference = torch.as_tensor(given, dtype=values.dtype, device=values.device).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"'reference' must be a number, or one a feature (got {given!r}).") from error
    if reference.numel() not in (1, width) or not torch.isfinite(reference).all():
        raise ConfigError(f"'reference' must hold 1 or {width} finite values (got {reference.numel()}).")
    return reference.expand(width)


def _players(row: Tensor, column: Tensor, each: bool) -> Tensor:
    """Numbers the players: every entry that differs from its reference is one, or every feature that does."""
    if each:
        return torch.arange(row.numel(), device=row.device)
    return torch.unique(column, return_inverse=True)[1]
