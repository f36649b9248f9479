"""Contributions of features inside the explained subgraph, measured on the model as Shapley values.

A feature is taken away by giving it its reference value at the nodes (or edges) of the subgraph; everything else stays
as it is. The reference value is the user's, or the mean over the instance; of a feature that is only ever 0 or 1 it is
the more frequent of both, so that a word is removed by not being there. Whole numbers that name something, as those of
an embedding do, have no mean: there it is the most frequent. In a heterogeneous graph each type has its own features.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError, check_counts
from gflowexplainer.explanation.findings import FeatureContributions
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.typed import NODE_ROW, NODE_TYPE
from gflowexplainer.inference.changed_inputs import change_rows, predict_changed
from gflowexplainer.inference.shapley_values import shapley_values
from gflowexplainer.model.adapter import ModelAdapter
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.typed import TypedPredictor
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.sampler import FlowSampler

_SAME = 1e-9


@dataclass(frozen=True)
class _Table:
    """The ``r`` nodes or edges of a subgraph whose ``F`` features are measured.

    Attributes:
        name: Argument whose rows change: ``"x"``, or the name of another.
        ids: Their ids in the graph, shape ``[r]``.
        values: Their features, shape ``[r, F]``.
        given: Reference values of the features, shape ``[F]``.
        differs: Where a feature is not at its reference value, shape ``[r, F]``.
        types: Types whose features stand behind each other, each with their number; none of other graphs.
    """

    name: str
    ids: Tensor
    values: Tensor
    given: Tensor
    differs: Tensor
    types: tuple[tuple[str, int], ...] = ()


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
        nodes: The same by their ids in the graph.
        of: ``"x"``, or the name of an argument of the model with one row a node or an edge.
        reference: Values that stand for "not there": a number, or one a feature.
        each: Whether every entry of the subgraph is measured by itself, not every feature.
        evaluations: Combinations of features that are evaluated, about; all of them where they are fewer.
    """
    check_counts(evaluations=evaluations)
    instances, predictor = sampler.instances, sampler.predictor
    one = instances.select(torch.tensor([position], device=instances.device))
    first = int(instances.ptr[position])
    inside = torch.zeros(one.num_nodes, dtype=torch.bool, device=one.device)
    inside[[member - first for member in members]] = True
    if isinstance(predictor, TypedPredictor):
        table = _typed_table(predictor, one, of, inside, reference)
    else:
        table = _table(predictor, one, of, inside, reference)
    row, column = torch.nonzero(table.differs, as_tuple=True)
    player = torch.arange(row.numel(), device=row.device) if each else torch.unique(column, return_inverse=True)[1]
    count = int(player.max()) + 1 if player.numel() else 0
    which = torch.full_like(table.differs, -1, dtype=torch.long)
    which[row, column] = player
    label = None if sampler.inputs.target.label is None else int(sampler.inputs.target.label[position])

    def play(coalition: Tensor) -> Tensor:
        # The last player stands for what is at its reference value anyway.
        here = torch.nn.functional.pad(coalition.to(one.device), (0, 1), value=True)
        return _predict(predictor, one, table, here, which)[:, 0 if label is None else label]

    found = shapley_values(count, play, evaluations=evaluations)
    single = found.value.to(one.device)
    columns = torch.zeros(table.values.size(1), dtype=torch.double, device=one.device)
    entries: tuple[tuple[int, int, float], ...] = ()
    if each:
        entry = single[player]
        columns.index_add_(0, column, entry)
        entries = tuple(zip(table.ids[row].tolist(), column.tolist(), entry.tolist(), strict=True))
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
        types=table.types,
    )


def _table(predictor: Predictor, one: Instances, of: str, inside: Tensor, reference: Any) -> _Table:
    """Reads what is measured of a graph with one type of nodes."""
    if of == "x" or of in one.node_arguments:
        values = one.rows() if of == "x" else one.node_arguments[of]
        ids, rows = one.node_id, torch.nonzero(inside).flatten()
    elif of in one.edge_arguments:
        source, target = one.edge_index
        values, ids = one.edge_arguments[of], one.edge_id
        rows = torch.nonzero(inside[source] & inside[target]).flatten()
    else:
        raise _missing(of, ("x", *one.node_arguments, *one.edge_arguments))
    if not values.is_floating_point():
        raise ConfigError(f"'{of}' holds {values.dtype}, which has no reference value. Only numbers can be measured.")
    values = values.reshape(values.size(0), -1)
    numbers = of == "x" and isinstance(predictor.model, ModelAdapter) and predictor.model.form.dtype
    given = values.mode(dim=0).values if numbers and reference is None else _reference(reference, values)
    return _Table(of, ids[rows], values[rows], given, (values[rows] - given).abs() > _SAME)


def _typed_table(predictor: TypedPredictor, one: Instances, of: str, inside: Tensor, reference: Any) -> _Table:
    """Reads what is measured of a heterogeneous graph: the features of each type behind each other."""
    graph, name = predictor.graph, f"{of}_dict"
    if graph.numbered:
        raise ConfigError(
            f"The model knows nodes by their numbers ('{graph.numbered[0]}'), so the same node cannot be there with "
            "other features."
        )
    known = graph.node_values.get(name, {})
    blocks = {key: value.flatten(1) for key, value in known.items() if value.is_floating_point()}
    if not blocks:
        raise _missing(of, [other.removesuffix("_dict") for other in graph.node_values])
    types = tuple((key, block.size(1)) for key, block in blocks.items())
    kind, row, rows = one.node_arguments[NODE_TYPE], one.node_arguments[NODE_ROW], torch.nonzero(inside).flatten()
    values = torch.zeros(rows.numel(), sum(width for _, width in types), device=one.device)
    own, given, begin = torch.zeros_like(values, dtype=torch.bool), values.new_zeros(values.size(1)), 0
    for key, block in blocks.items():
        here, columns = kind == graph.node_types.index(key), slice(begin, begin + block.size(1))
        at = torch.nonzero(here[rows]).flatten()
        values[at, columns], own[at, columns] = block[row[rows[at]]].to(values), True
        if at.numel() and reference is None:
            given[columns] = _reference(None, block[row[here]]).to(given)
        begin = columns.stop
    if reference is not None:
        given = _reference(reference, values)
    return _Table(name, one.node_id[rows], values, given, own & ((values - given).abs() > _SAME), types)


def _predict(predictor: Predictor, one: Instances, table: _Table, here: Tensor, which: Tensor) -> Tensor:
    """Predicts on the instance with only the features of some players, for each of ``Q`` sets of them, ``[Q, C]``.

    Args:
        predictor: The model.
        one: The instance.
        table: What is measured.
        here: Which players are there, shape ``[Q, P + 1]``; the last one always is.
        which: The player of each feature of each row, shape ``[r, F]``; ``-1`` for none.
    """
    measured, order = table.ids.sort()

    def new_rows(number: Tensor, at: Tensor) -> Tensor:
        """Returns rows ``at`` as they are in copies of some numbers."""
        return torch.where(here[number[:, None], which[at]], table.values[at], table.given.expand_as(table.values)[at])

    name = table.name
    if isinstance(predictor, TypedPredictor):
        # The rows of all copies stand behind those of the graph, and copies say where.
        name = NODE_ROW
        predictor, place = _with_rows(predictor, one, table, len(here), new_rows)

    def change(copies: Instances, number: Tensor) -> Instances:
        def rewrite(owner: Tensor, ids: Tensor, old: Tensor) -> Tensor:
            position, there = find_sorted(measured, ids)
            hit = torch.nonzero(there).flatten()
            copy_of, at, new = number[owner[hit]], order[position[hit]], old.clone()
            changed = place[copy_of, at] if name == NODE_ROW else new_rows(copy_of, at)
            new[hit] = changed.reshape(new[hit].shape).to(new.dtype)
            return new

        return change_rows(copies, name, rewrite)

    return predict_changed(predictor, one, len(here), change)


def _with_rows(
    predictor: TypedPredictor, one: Instances, table: _Table, count: int, new_rows: Any
) -> tuple[TypedPredictor, Tensor]:
    """Returns a predictor that knows the rows of ``count`` copies too, and where these are, ``[count, r]``."""
    graph, begin = predictor.graph, 0
    position, _ = find_sorted(one.node_id, table.ids)
    kind, row = one.node_arguments[NODE_TYPE][position], one.node_arguments[NODE_ROW][position]
    place = row.repeat(count, 1)
    values = {name: dict(by_type) for name, by_type in graph.node_values.items()}
    widths = dict(table.types)
    for number, key in enumerate(graph.node_types):
        at, width = torch.nonzero(kind == number).flatten(), widths.get(key, 0)
        if at.numel():
            copies = torch.arange(count, device=row.device).repeat_interleave(at.numel())
            first = int(next(v[key].size(0) for v in values.values() if key in v))
            place[:, at] = first + torch.arange(count * at.numel(), device=row.device).reshape(count, -1)
            for name, by_type in values.items():
                if key in by_type:
                    old = by_type[key][row[at]].repeat(count, *[1] * (by_type[key].dim() - 1))
                    if name == table.name and width:
                        new = new_rows(copies, at.repeat(count))[:, begin : begin + width]
                        old = new.reshape(old.shape).to(old)
                    by_type[key] = torch.cat([by_type[key], old])
        begin += width
    changed = copy.copy(predictor)
    changed.graph = replace(graph, node_values=values)
    return changed, place


def _missing(of: str, there: Sequence[str]) -> ConfigError:
    listed = ", ".join(map(repr, there))
    return ConfigError(f"The model takes no {of!r} with one row of numbers a node or an edge. There are {listed}.")


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
