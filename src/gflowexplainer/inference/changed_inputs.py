"""One instance many times, each time changed: without some of its edges, or with other features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import named_instances
from gflowexplainer.ops.hashed_random import combine
from gflowexplainer.ops.segments import pointers, segment_ids, segment_sum


def predict_changed(
    predictor: Predictor, instance: Instances, count: int, change: Callable[[Instances, Tensor], Instances]
) -> Tensor:
    """Predicts on ``count`` changed copies of one instance, in as few calls as memory allows, shape ``[count, C]``.

    Args:
        predictor: The model.
        instance: One instance.
        count: Number of copies.
        change: Changes copies; called with some copies and their numbers among all.
    """
    every = torch.arange(count, device=instance.device)

    def predict(chunk: slice) -> Tensor:
        number = every[chunk]
        copies = instance.select(torch.zeros_like(number))
        return predictor.whole(_told_apart(change(copies, number), number))

    with predictor.evaluating():
        return predictor.in_chunks(instance, torch.zeros_like(every), predict)


def drop_edges(copies: Instances, is_gone: Callable[[Tensor, Tensor], Tensor]) -> Instances:
    """Returns copies without the edges that ``is_gone`` marks, in their surroundings too.

    Args:
        copies: The copies.
        is_gone: Marks edges, given the copy ``[e]`` that each lies in and its id in the user's graph ``[e]``.
    """
    owner = segment_ids(copies.edge_counts, copies.edge_id.numel())
    stays = torch.nonzero(~is_gone(owner, copies.edge_id)).flatten()
    counts = segment_sum(torch.ones_like(stays), owner[stays], len(copies))
    return replace(
        copies,
        edge_ptr=pointers(counts),
        edge_index=copies.edge_index[:, stays],
        edge_id=copies.edge_id[stays],
        edge_arguments={name: value[stays] for name, value in copies.edge_arguments.items()},
        surroundings=None if copies.surroundings is None else drop_edges(copies.surroundings, is_gone),
    )


def change_rows(copies: Instances, name: str, change: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Instances:
    """Returns copies with other values of ``"x"`` or of an argument of the model, in their surroundings too.

    Args:
        copies: The copies.
        name: ``"x"``, or the name of an argument with one row a node or an edge.
        change: Returns the new rows, given the copy ``[r]`` that each lies in, the id of its node or edge in the user's
            graph ``[r]``, and its values ``[r, ...]``.
    """
    outer = None if copies.surroundings is None else change_rows(copies.surroundings, name, change)
    if name == "x":
        rows = change(copies.owner, copies.node_id, copies.rows())
        return replace(copies, x=rows, x_row=None, surroundings=outer)
    if name in copies.node_arguments:
        rows = change(copies.owner, copies.node_id, copies.node_arguments[name])
        return replace(copies, node_arguments=copies.node_arguments | {name: rows}, surroundings=outer)
    if name in copies.edge_arguments:
        owner = segment_ids(copies.edge_counts, copies.edge_id.numel())
        rows = change(owner, copies.edge_id, copies.edge_arguments[name])
        return replace(copies, edge_arguments=copies.edge_arguments | {name: rows}, surroundings=outer)
    there = ", ".join(repr(known) for known in ("x", *copies.node_arguments, *copies.edge_arguments))
    raise ConfigError(f"The model takes no {name!r} with one row a node or an edge. There are {there}.")


def _told_apart(copies: Instances, number: Tensor) -> Instances:
    """Names each copy by its number: instances of one name would count as the same."""
    outer = None if copies.surroundings is None else _told_apart(copies.surroundings, number)
    return replace(named_instances(copies, combine(copies.graph, number)), surroundings=outer)
