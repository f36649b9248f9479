"""Trainings of flow networks as steps of experiments: curves of loss and distance, and scores at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import Subject
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.paper.experiment import Scope
from gflowbench.paper.line_figures import Line
from gflowbench.paper.steps import Measurement
from gflowbench.protocol import Problem
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.exact import Enumeration, enumerate_subgraphs, terminal_distribution, total_variation
from gflowexplainer.settings import Settings
from gflowexplainer.training.checkpoint import UpdateRecord
from gflowexplainer.training.trainer import Trainer


@dataclass(frozen=True)
class Training:
    """A training to run.

    Attributes:
        dataset: Name of the dataset.
        preset: Name of the settings to begin with.
        changes: Changed settings.
        every: Every n-th instance is trained on.
        subgraphs: If positive, only the instance whose number of connected subgraphs is nearest to this.
        distance_every: Updates between two measurements of the distance to the exact distribution; 0 for none.
        scored: Whether the trained network explains the instances and is scored.
    """

    dataset: str
    preset: str = "context"
    changes: Mapping[str, Any] = field(default_factory=dict)
    every: int = 1
    subgraphs: int = 0
    distance_every: int = 0
    scored: bool = False

    def step(self, name: str, scope: Scope, seed: int) -> Measurement:
        """Makes it a step of an experiment."""
        problem = scope.problem(self.dataset, every=self.every)
        # The changes, not all settings: a setting that is added later must not forget what was computed.
        settings = vars(self) | {"changes": dict(self.changes), "seed": seed}
        settings |= {"gnn": problem.gnn, "problem": problem.settings}
        return Measurement(name, settings, partial(self.run, problem, seed))

    def run(self, problem: Problem, seed: int) -> dict[str, Any]:
        """Trains on the instances of ``problem``.

        Returns:
            ``"loss"``: its mean over each epoch; ``"distance"``: pairs of updates and distances; ``"metrics"``: AUC and
            accuracy; ``"diverged"``: the update at which the loss was no number any more, ``None`` if it always was;
            numbers of instances, updates and nodes at most, and all settings.
        """
        loaded = problem.load()
        subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
        if self.subgraphs:
            subject = subject.select(self._nearest(subject))
        watch = Watch(self.distance_every)
        explainer = GFlow(preset=self.preset, **self.changes, fitting={"callback": watch})
        try:
            explainer.fit(subject, seed)
        except ConfigError:
            if not watch.records:  # it could not even begin: a mistake in the settings
                raise
            return self._summary(subject, explainer.settings, watch.records) | {
                "diverged": len(watch.records),
                "metrics": {},
            }
        metrics = {}
        truth = GroundTruth.of(loaded.benchmark, subject)
        if self.scored and truth is not None:
            metrics = agreement(subject, explainer.explain(subject, seed), truth)
        return self._summary(subject, explainer.settings, watch.records) | {"diverged": None, "metrics": metrics}

    def _nearest(self, subject: Subject) -> Tensor:
        bound = Settings.preset(self.preset, **self.changes).max_nodes
        every = torch.arange(len(subject), device=subject.instances.device)
        counts = enumerate_subgraphs(subject.instances, every, subject.instances.center, bound).counts
        return (counts - self.subgraphs).abs().argmin().reshape(1)

    def _summary(self, subject: Subject, settings: Settings, records: Sequence[UpdateRecord]) -> dict[str, Any]:
        size = -(-len(subject) // settings.batch_size)
        epochs = [records[begin : begin + size] for begin in range(0, len(records), size)]
        return {
            "loss": [fmean(record["loss"] for record in epoch) for epoch in epochs],
            "distance": [[r["iteration"] + 1, r["distance"]] for r in records if "distance" in r],
            "instances": len(subject),
            "updates": len(records),
            "seconds_of_updates": sum(record["seconds"] for record in records),
            "settings": settings.to_dict(),
        }


class Watch:
    """A callback of a training that keeps the record of every update, with its distance to the exact distribution.

    The distance is the mean total variation between what the policy samples and the target, over all training
    instances, by enumeration of all their connected subgraphs.

    Args:
        every: Updates between two measurements of the distance; 0 for none.
        limit: Connected subgraphs in total above which
            :class:`~gflowexplainer.errors.EnumerationError` is raised, at the first update.
    """

    def __init__(self, every: int = 0, limit: int = 200_000) -> None:
        self.every, self.limit = every, limit
        self.records: list[UpdateRecord] = []
        self._truth: tuple[Enumeration, Tensor] | None = None

    def __call__(self, trainer: Trainer, record: UpdateRecord) -> None:
        """Measures the distance after an update, and keeps its record."""
        if self.every and self._truth is None:
            self._truth = self._enumerate(trainer)
        if self._truth is not None and trainer.iteration % self.every == 0:
            (enumeration, target), policy = self._truth, trainer.network.policy
            with torch.no_grad():
                reached = terminal_distribution(enumeration, policy, trainer.sampler.encode())
            record["distance"] = float(total_variation(enumeration, reached, target).mean())
        self.records.append(record)

    def _enumerate(self, trainer: Trainer) -> tuple[Enumeration, Tensor]:
        """Lists all subgraphs, and their log-probability where the reward alone counts (a uniform measure)."""
        every = torch.arange(len(trainer.instances), device=trainer.instances.device)
        start, bound = trainer.sampler.starts(every), trainer.settings.max_nodes
        found = enumerate_subgraphs(trainer.instances, every, start, bound, limit=self.limit)
        some = torch.nonzero(found.states.complete).flatten()
        log_reward = torch.zeros(len(found.states), dtype=torch.double, device=every.device)
        reward = trainer.reward.log_reward(found.states.subgraphs[some], found.states.can_grow[some])
        log_reward[some] = reward.double()
        return found, found.normalize(log_reward)


def loss_line(values: Sequence[Mapping[str, Any]]) -> Line:
    """Averages the losses of several seeds over epochs, as far as all of them came."""
    length = min(len(value["loss"]) for value in values)
    return Line.of_seeds(list(range(1, length + 1)), [value["loss"][:length] for value in values])


def distance_line(values: Sequence[Mapping[str, Any]]) -> Line:
    """Averages the distances of several seeds over updates."""
    length = min(len(value["distance"]) for value in values)
    updates = [update for update, _ in values[0]["distance"][:length]]
    return Line.of_seeds(updates, [[d for _, d in value["distance"][:length]] for value in values])


def early_and_late(value: Mapping[str, Any]) -> tuple[float, float]:
    """Returns the mean loss over the first and over the last tenth of the epochs."""
    loss = value["loss"]
    tenth = max(len(loss) // 10, 1)
    return fmean(loss[:tenth]), fmean(loss[-tenth:])


def falls(value: Mapping[str, Any]) -> bool:
    """Whether a loss converges: it ends below half of where it began, and in the last fifth changes little.

    Little is less than a tenth of where it began, between the last tenth of the epochs and the tenth before.
    """
    if value["diverged"] is not None:
        return False
    begin, end = early_and_late(value)
    loss = value["loss"]
    tenth = max(len(loss) // 10, 1)
    before = fmean(loss[-2 * tenth : -tenth] or loss[-tenth:])
    return end < 0.5 * begin and abs(end - before) < 0.1 * begin
