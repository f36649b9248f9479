"""What subgraphs do for predictions, measured: in contexts of which they are a part, or by gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.gradients import integrated_gradients
from gflowexplainer.rewards.least_squares import shares_of, within

MOST_ASKED = 128
"""Instances whose gradients are computed, at most."""
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


class Measuring:
    """Measures subgraphs in contexts, each of them once.

    Args:
        inputs: The instances, with what the model predicts for them.
        num_contexts: Contexts of each instance.
        seed: Names the contexts.
    """

    def __init__(self, inputs: TaskInputs, num_contexts: int, seed: int) -> None:
        self.inputs, self.num_contexts, self.seed = inputs, num_contexts, seed
        self._halves: dict[tuple[float, str], list[ContextReward]] = {}

    def measure(self, subgraphs: Subgraphs, keep_probability: float, removal: str) -> Measurements:
        """Measures subgraphs in two independent halves of the contexts; see :class:`ContextReward`."""
        kind = keep_probability, removal
        asked = self._halves[kind] = self._halves.get(kind) or self._contexts(*kind)
        halves = [reward.log_score(subgraphs) for reward in asked]
        share = shares_of(subgraphs.instance)
        one, other = (within(half, subgraphs.instance, share) for half in halves)
        scale = ((share * one.square()).sum() * (share * other.square()).sum()).sqrt()
        agreement = max(0.0, float((share * one * other).sum() / scale)) if scale > 0 else 0.0
        # Of the mean of both halves, by the formula of Spearman and Brown.
        return Measurements((halves[0] + halves[1]) / 2, 2 * agreement / (1 + agreement))

    def _contexts(self, keep_probability: float, removal: str) -> list[ContextReward]:
        number = self.num_contexts
        return [
            ContextReward(
                self.inputs.predictor,
                self.inputs.instances,
                target=self.inputs.target,
                removal=removal,
                num_contexts=max(1, contexts),
                keep_probability=keep_probability,
                average="strength",
                seed=int(combine(self.seed, half)),
            )
            for half, contexts in enumerate((number - number // 2, number // 2))
        ]


def measure_gradients(inputs: TaskInputs, subgraphs: Subgraphs, seed: int) -> Measurements | None:
    """Adds up the integrated gradients of the nodes of subgraphs, of some graphs; ``None`` where there are none."""
    found = gradients_of_some(inputs, seed)
    if found is None:
        return None
    value, asked = found
    rows = torch.nonzero(asked[subgraphs.instance]).flatten()
    return Measurements(sums_over(subgraphs[rows], value), 1.0, rows)


def gradients_of_some(inputs: TaskInputs, seed: int, baseline: Tensor | None = None) -> tuple[Tensor, Tensor] | None:
    """Returns the :func:`integrated_gradients` of some instances, ``[n]``, and which these are, ``[I]``."""
    instances = inputs.instances
    some = torch.argsort(uniform(seed, instances.own_key, _PICKED))[:MOST_ASKED].sort().values
    added = integrated_gradients(inputs.select(some), baseline)
    if added is None:
        return None
    asked = torch.zeros(len(instances), dtype=torch.bool, device=some.device)
    asked[some] = True
    value = added.new_zeros(instances.num_nodes)
    value[asked[instances.owner]] = added
    return value, asked


def sums_over(subgraphs: Subgraphs, value: Tensor) -> Tensor:
    """Adds up a value of nodes ``[n]`` over the members of each subgraph, shape ``[B]``."""
    return torch.where(subgraphs.filled, value[subgraphs.members.clamp(min=0)], 0).sum(dim=1)
