"""Fits evidence to what was measured of subgraphs, and scores it where it was not fitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from gflowexplainer.choices import EvidenceType
from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import segment_argmax
from gflowexplainer.rewards.candidates import Candidates
from gflowexplainer.rewards.effect import Effect, effect_of
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.least_squares import LeastSquares, Regularization, held_out
from gflowexplainer.rewards.measuring import Measurements

CAUTION, WORTH = (1.0, 10.0, 100.0), 0.05
"""What penalties are multiplied by, and how much more of the variance has to be explained for a larger one to be
taken: weights of many kinds, learned from few instances, may describe these and no others."""


class Description(NamedTuple):
    """What ``B`` subgraphs are made of, by one kind of evidence.

    Attributes:
        basis: Brings raw evidence of nodes to kinds, shape ``[R, D]``.
        rows: The descriptions, shape ``[B, P]``.
        ridge: Penalty of each standardised weight, shape ``[P]``.
    """

    basis: Tensor
    rows: Tensor
    ridge: Tensor


class Tried(NamedTuple):
    """A trial, and what was fitted in it: a basis ``[R, D]`` and weights ``[C + 1, P]``."""

    trial: EvidenceTrial
    basis: Tensor
    weights: Tensor


@dataclass(frozen=True)
class Fitting:
    """What all candidates are fitted to, and scored on: the same subgraphs, classes and folds.

    Attributes:
        inputs: The instances, with what the model predicts for them.
        subgraphs: ``B`` subgraphs of all instances.
        fold: The fold of each subgraph, from 0, shape ``[B]``.
    """

    inputs: TaskInputs
    subgraphs: Subgraphs
    fold: Tensor
    _effects: dict[tuple[int, ...], Effect | None] = field(default_factory=dict)

    @property
    def label(self) -> Tensor | None:
        """Class of each instance, shape ``[I]``; ``None`` for values."""
        return self.inputs.target.label

    @property
    def several(self) -> bool:
        """Whether instances of several classes are explained."""
        return self.label is not None and int(self.label.min()) < int(self.label.max())

    @property
    def _classes(self) -> int:
        return 0 if self.label is None else self.inputs.target.prediction.size(1)

    def weights(self, description: Description, found: Measurements, regularization: Regularization) -> Tensor:
        """Fits what was measured; see :class:`~gflowexplainer.rewards.least_squares.LeastSquares`."""
        rows, instance = description.rows[found.rows], self.subgraphs.instance[found.rows]
        fitted = LeastSquares(rows, found.value, instance, self.label, description.ridge)
        return fitted.weights(self._classes, regularization)

    def held_out(
        self, description: Description, found: Measurements, regularizations: Sequence[Regularization]
    ) -> list[float]:
        """Scores such fits where they were not fitted; see :func:`held_out`."""
        rows, instance, fold = (of[found.rows] for of in (description.rows, self.subgraphs.instance, self.fold))
        return held_out(
            rows, found.value, instance, self.label, self._classes, description.ridge, regularizations, fold
        )

    def rating(self, description: Description, weights: Tensor) -> Tensor:
        """Returns the evidence per node of the subgraphs by weights ``[C + 1, P]``, shape ``[B]``."""
        own = weights[-1 if self.label is None else self.label[self.subgraphs.instance]]
        return (description.rows * own).sum(dim=1) / self.subgraphs.size

    def effect(self, rating: Tensor) -> Effect | None:
        """Evaluates what the subgraphs do whose ``rating`` ``[B]`` is best; ``None`` of values.

        ``None`` too where the model cannot be evaluated on so little, as one with a norm over a single node.
        """
        if self.label is None:
            return None
        best = segment_argmax(rating, self.subgraphs.instance, len(self.inputs))
        name = tuple(best.tolist())
        if name not in self._effects:
            try:
                self._effects[name] = effect_of(self.inputs, self.subgraphs[best])
            except ModelError:
                self._effects[name] = None
        return self._effects[name]

    def attempts(
        self,
        candidates: Candidates,
        kind: EvidenceType,
        description: Description,
        found: Measurements,
        *,
        least: float = -math.inf,
        by_gradients: bool = False,
        **measured: Any,
    ) -> Iterator[Tried]:
        """Fits one kind of evidence to what was measured, with one set of weights and, where it may, by class.

        What explains no more than ``least`` is not worth evaluating the model for.
        """
        shared = kind.is_shared
        # Weights of gradients that are held back more rate best what does less to the model.
        tried = [Regularization(caution=factor) for factor in (CAUTION[:1] if by_gradients else CAUTION)]
        # What the model loses without a node means the same in every class.
        for by_class in (False, True) if self.several and shared else (False,):
            told = self.held_out(description, found, tried)
            place = told.index(max(told)) if by_class else _worth(told)
            explained, best = told[place], tried[place]
            if self.label is not None:
                # By class, penalties are those that were best for all.
                tried = [Regularization(pooling, best.caution) for pooling in candidates.poolings(self.label)]
            weights = self.weights(description, found, best)
            effect = self.effect(self.rating(description, weights)) if shared and explained > least else None
            yield Tried(
                EvidenceTrial(
                    kind,
                    by_class=by_class,
                    by_gradients=by_gradients,
                    explained=explained,
                    reproducible=found.reproducible,
                    effect=effect,
                    **measured,
                ),
                description.basis,
                weights,
            )


def _worth(told: Sequence[float]) -> int:
    """Returns the place of what explains most, where what comes later has to explain more to be taken."""
    best = 0
    for place, explained in enumerate(told):
        best = place if explained > told[best] + WORTH else best
    return best
