"""What subgraphs do for predictions, measured: in contexts of which they are a part, or by gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.rewards.consensus import shares_of, within
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.gradients import integrated_gradients

MOST_GRAPHS = 128
"""Graphs whose gradients are asked for."""
_PICKED = 3


class Measurements(NamedTuple):
    """How strongly subgraphs spoke for their predictions, in contexts of one kind or by gradients.

    Attributes:
        value: Mean over all contexts, shape ``[B]``.
        reproducible: Share of the variance within instances that another draw of contexts would show again.
        rows: Which subgraphs were measured, where not all were, shape ``[B]``.
    """

    value: Tensor
    reproducible: float
    rows: Tensor | slice = slice(None)


def measure(
    inputs: TaskInputs, subgraphs: Subgraphs, keep_probability: float, removal: str, num_contexts: int, seed: int
) -> Measurements:
    """Measures subgraphs in two independent halves of the contexts."""
    halves = [
        ContextReward(
            inputs.predictor,
            inputs.instances,
            target=inputs.target,
            removal=removal,
            num_contexts=max(1, number),
            keep_probability=keep_probability,
            average="strength",
            seed=int(combine(seed, half)),
        ).log_score(subgraphs)
        for half, number in enumerate((num_contexts - num_contexts // 2, num_contexts // 2))
    ]
    share = shares_of(subgraphs.instance)
    one, other = (within(half, subgraphs.instance, share) for half in halves)
    scale = ((share * one.square()).sum() * (share * other.square()).sum()).sqrt()
    agreement = max(0.0, float((share * one * other).sum() / scale)) if scale > 0 else 0.0
    # Of the mean of both halves, by the formula of Spearman and Brown.
    return Measurements((halves[0] + halves[1]) / 2, 2 * agreement / (1 + agreement))


def measure_gradients(inputs: TaskInputs, subgraphs: Subgraphs, seed: int) -> Measurements | None:
    """Adds up the integrated gradients of the nodes of subgraphs, of some graphs; ``None`` where there are none."""
    instances = inputs.instances
    some = torch.argsort(uniform(seed, instances.own_key, _PICKED))[:MOST_GRAPHS].sort().values
    added = integrated_gradients(inputs.select(some))
    if added is None:
        return None
    asked = torch.zeros(len(instances), dtype=torch.bool, device=some.device)
    asked[some] = True
    value = added.new_zeros(instances.num_nodes)
    value[asked[instances.owner]] = added
    rows = torch.nonzero(asked[subgraphs.instance]).flatten()
    members, filled = subgraphs.members[rows], subgraphs.filled[rows]
    return Measurements(torch.where(filled, value[members.clamp(min=0)], 0).sum(dim=1), 1.0, rows)
