r"""Ranks with ties: an explainer is behind another one only if it is so by more than the spread.

With means :math:`m` and standard deviations :math:`\sigma` over seeds and GNNs, a beats b where
:math:`m_a - m_b > \max(\sqrt{\sigma_a^2 + \sigma_b^2},\, .005)`. The rank of an explainer is one more than the number
of those that beat it, so several may share a rank. What was run once has no spread of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gflowbench.protocol.record import OK, Record

LEAST = 0.005
"""Differences that no table with two to three digits shows."""
SMALLER_IS_BETTER = (
    "fidelity_minus",
    "robust_fidelity_minus",
    "unfaithfulness",
    "sufficiency_area",
    "shown_only_error",
    "milliseconds",
)


@dataclass(frozen=True)
class Standing:
    """Where an explainer stands on a task.

    Attributes:
        explainer: Its name.
        mean: Of the score, over seeds and GNNs.
        spread: Standard deviation; ``nan`` where there is one value.
        runs: Number of values.
        rank: 1 is best; ties share a rank.
    """

    explainer: str
    mean: float
    spread: float
    runs: int
    rank: int


def standings(record: Record, dataset: str, metric: str) -> list[Standing]:
    """Ranks the explainers on a task, best first; those without a value are left out.

    Args:
        record: Results of the protocol.
        dataset: The task.
        metric: Which score.
    """
    values: dict[str, list[float]] = {}
    for cell in record.cells:
        if cell.dataset == dataset and cell.status == OK:
            value = cell.metrics.get(metric, math.nan)
            if not math.isnan(value):
                values.setdefault(cell.explainer, []).append(value)
    sign = -1 if metric in SMALLER_IS_BETTER else 1
    found = [(name, float(np.mean(v)), _deviation(v), len(v)) for name, v in values.items()]
    found.sort(key=lambda one: (-sign * one[1], one[0]))
    return [
        Standing(name, mean, spread, runs, 1 + sum(beats(sign * m, s, sign * mean, spread) for _, m, s, _ in found))
        for name, mean, spread, runs in found
    ]


def beats(mean: float, spread: float, other: float, other_spread: float) -> bool:
    """Says whether a mean is larger than another one by more than the spread of both."""
    known = [value for value in (spread, other_spread) if not math.isnan(value)]
    return mean - other > max(math.hypot(*known), LEAST)


def mean_ranks(tables: Sequence[Sequence[Standing]]) -> dict[str, float]:
    """Averages the ranks of every explainer over the tasks where it has one."""
    ranks: dict[str, list[int]] = {}
    for table in tables:
        for standing in table:
            ranks.setdefault(standing.explainer, []).append(standing.rank)
    return {name: sum(values) / len(values) for name, values in ranks.items()}


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
