"""The training loop: rollouts, updates, progress, checkpoints, resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.locator import locator_loss
from gflowexplainer.flow.network import FlowNetwork
from gflowexplainer.flow.objectives import Loss
from gflowexplainer.flow.sampling import Rollouts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import Stream, uniform
from gflowexplainer.rewards.base import Reward
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.training.checkpoint import (
    CHECKPOINT,
    METRICS,
    UpdateRecord,
    append_lines,
    cut_lines,
    load_training,
    save_training,
    training_identity,
)
from gflowexplainer.training.distributed import Fabric, Ranks
from gflowexplainer.training.interrupts import interrupts_wait

Callback = Callable[["Trainer", UpdateRecord], None]


class Trainer:
    """Trains a sampler on its instances.

    Args:
        sampler: What is trained.
        fabric: A Fabric that was launched, where several processes train together; each makes a trainer alike.
        identity: Names what the training is of, where it is stored; found from the sampler if not given.
    """

    def __init__(
        self, sampler: FlowSampler, *, fabric: Fabric | None = None, identity: Mapping[str, str] | None = None
    ) -> None:
        self.sampler, self.ranks = sampler, Ranks(fabric)
        self._given_identity = identity
        self.ranks.copy(sampler.network)
        self._exchange_scores()
        self.iteration = 0
        # Set while weights and bookkeeping disagree; such a state is never stored.
        self._halfway = False

    @property
    def settings(self) -> Settings:
        """All settings."""
        return self.sampler.settings

    @property
    def instances(self) -> Instances:
        """What is trained on."""
        return self.sampler.instances

    @property
    def network(self) -> FlowNetwork:
        """What learns."""
        return self.sampler.network

    @property
    def reward(self) -> Reward:
        """What it learns from."""
        return self.sampler.reward

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """What the training is of."""
        return training_identity(self.sampler) if self._given_identity is None else self._given_identity

    @cached_property
    def optimizer(self) -> torch.optim.Optimizer:
        """What turns gradients into updates; who only explains never makes one."""
        rate, decay = self.settings.learning_rate, self.settings.weight_decay
        optimizer = torch.optim.AdamW(self._parameter_groups(), lr=rate, weight_decay=decay, fused=True)
        self._base_rates = [group["lr"] for group in optimizer.param_groups]
        return optimizer

    def _parameter_groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = [{"params": list(self.network.policy.parameters())}]
        if self.network.locator is not None:
            groups.append({"params": list(self.network.locator.parameters())})
        if self.network.partition is not None:
            # The paper's rate for Z; a partition function is far away and one number, so it may run.
            groups.append({"params": list(self.network.partition.parameters()), "lr": 0.1})
        return groups

    @property
    def batches_per_epoch(self) -> int:
        """Updates in one pass over the instances."""
        return math.ceil(len(self.instances) / self.settings.batch_size)

    @property
    def num_iterations(self) -> int:
        """Updates of the whole training."""
        updates = self.settings.epochs * self.batches_per_epoch
        return min(updates, self.settings.max_updates) if self.settings.max_updates else updates

    def step(self) -> UpdateRecord:
        """Performs one update and tells how it went; several processes do so together, each with its instances."""
        began = time.perf_counter()
        rollouts = self._grow(self.ranks.mine(self._batch()))
        log_score, size = self.ranks.mean(*self._ends(rollouts))[1].tolist()
        loss = self._descend_often(rollouts)
        record: UpdateRecord = {"iteration": self.iteration, "loss": loss, "log_score": log_score, "size": size}
        self._exchange_scores()
        self.iteration += 1
        if self.network.locator is not None and self.iteration % self.batches_per_epoch == 0:
            record["locator_loss"] = self._train_locator()
        self._halfway = False
        record["seconds"] = time.perf_counter() - began
        return record

    def _descend_often(self, rollouts: Rollouts | None) -> float:
        """Takes all steps down on the same rollouts; returns the loss before the first."""
        self._halfway = True
        losses = []
        for _ in range(self.settings.descents):
            (part,), mean = self.ranks.mean(self._nothing if rollouts is None else self.sampler.objective(rollouts))
            self._find_gradients(part)
            self._descend()
            losses.append(mean[0])
        found = torch.stack(losses).tolist()
        wrong = [loss for loss in found if not math.isfinite(loss)]
        if wrong:
            raise ConfigError(
                f"The loss became {wrong[0]} at iteration {self.iteration}. Lower 'learning_rate' or 'beta'."
            )
        return found[0]

    @property
    def _nothing(self) -> Loss:
        """A sum of no terms, of a process without rollouts."""
        return Loss(torch.zeros((), device=self.instances.device), 0)

    def _exchange_scores(self) -> None:
        """Tells the other processes what this one has computed of the reward."""
        if self.ranks.size > 1:
            self.reward.exchange(self.ranks.rows)

    def _grow(self, batch: Tensor) -> Rollouts | None:
        """Samples from the instances of ``batch``; ``None`` if a process has none."""
        if not batch.numel():
            return None
        several = batch.repeat_interleave(self.settings.rollouts)
        return self.sampler.sample(several, Stream.training, self.iteration, explore=True)

    def _ends(self, rollouts: Rollouts | None) -> tuple[Loss, Loss]:
        """Adds up log-scores and sizes of what rollouts ended in."""
        if rollouts is None:
            return self._nothing, self._nothing
        ends = rollouts.subgraphs
        score = self.reward.log_score(ends)
        return Loss(score.sum(), len(ends)), Loss(ends.size.to(score).sum(), len(ends))

    def _find_gradients(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        if loss.requires_grad:
            loss.backward()
        self.ranks.add_gradients(self.network.parameters())

    def _descend(self) -> None:
        progress = self.iteration / max(self.num_iterations - 1, 1)
        final = self.settings.final_rate
        factor = final + (1 - final) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        for group, rate in zip(self.optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = rate * factor
        if self.settings.clip_norm:
            nn.utils.clip_grad_norm_(self.network.policy.parameters(), self.settings.clip_norm)
        self.optimizer.step()

    def _batch(self) -> Tensor:
        """Takes the instances of this update from the epoch's own order."""
        epoch, number = divmod(self.iteration, self.batches_per_epoch)
        every = torch.arange(len(self.instances), device=self.instances.device)
        order = torch.argsort(uniform(self.settings.seed, Stream.shuffling, epoch, every))
        begin = number * self.settings.batch_size
        return order[begin : begin + self.settings.batch_size].sort().values

    def _train_locator(self) -> float:
        """Grows from every node of some graphs and teaches the locator which ones it paid at (Algorithm 2)."""
        locator, embedding = self.network.locator, self.sampler.network_inputs.embedding
        assert locator is not None
        assert embedding is not None
        settings, instances = self.settings, self.instances
        every = torch.arange(len(instances), device=instances.device)
        draw = uniform(settings.seed, Stream.locating, self.iteration, every)
        count = max(1, round(settings.locator_share * len(instances)))
        picked = self.ranks.mine(torch.argsort(draw)[:count])
        loss = torch.zeros((), device=instances.device)
        if picked.numel():
            node = torch.nonzero(torch.isin(instances.owner, picked)).flatten()
            graph = instances.owner[node]
            grown = self.sampler.sample(graph, Stream.locating, self.iteration, start=node)
            score = self.reward.log_score(grown.subgraphs)
            loss = locator_loss(locator(instances, embedding)[node], score, graph, len(instances))
        (share,), means = self.ranks.mean(Loss(loss * picked.numel(), picked.numel()))
        self._find_gradients(share)
        self._exchange_scores()
        self._descend()
        return means.item()

    def run(
        self,
        folder: Path | str | None = None,
        *,
        iterations: int | None = None,
        checkpoint_seconds: float = 5.0,
        progress: bool = True,
        callback: Callback | None = None,
    ) -> Trainer:
        """Trains to the end, or for so many further ``iterations``.

        Args:
            folder: Where the checkpoint and the curves (JSON lines) go. A training that was interrupted there is
                taken up again and comes to the same weights as one that was not.
            iterations: Updates to do now at most.
            checkpoint_seconds: Time between two checkpoints; the first update is stored at once.
            progress: Whether to show a progress bar on standard error.
            callback: Called after each update with the trainer and the record of the update; it may add to it. Of
                several processes, each calls its own, and the first one writes.
        """
        path = None if folder is None else Path(folder)
        if path is not None:
            with self.ranks.file(path / CHECKPOINT) as stored:
                if stored is not None:
                    self.load(stored)
        if not self.ranks.first:
            path, progress = None, False
        goal = self.num_iterations
        if iterations is not None:
            goal = min(goal, self.iteration + iterations)
        pending: list[UpdateRecord] = []
        saved = -math.inf
        bar = tqdm(total=self.num_iterations, initial=self.iteration, disable=not progress, desc="flow", leave=False)
        try:
            while self.iteration < goal:
                # An interrupt finds the update, its record and what the callback makes of it done.
                with interrupts_wait():
                    record = self.step()
                    pending.append(record)
                    if callback is not None:
                        callback(self, record)
                bar.update()
                bar.set_postfix(loss=f"{record['loss']:.3g}", refresh=False)
                if path is not None and time.monotonic() - saved > checkpoint_seconds:
                    self._store(path, pending)
                    saved = time.monotonic()
        finally:
            bar.close()
            if path is not None:
                self._store(path, pending)
        return self

    def _store(self, folder: Path, pending: list[UpdateRecord]) -> None:
        """Writes the checkpoint, then the curves up to it; what is beyond it is forgotten on resume.

        An update that was broken off halfway leaves the last checkpoint as it is.
        """
        if self._halfway:
            return
        with interrupts_wait():
            self.save(folder / CHECKPOINT)
            append_lines(folder / METRICS, pending)
            pending.clear()

    def save(self, path: Path | str) -> None:
        """Writes everything that is needed to go on, in one file."""
        save_training(Path(path), self.sampler, self.optimizer, self.iteration, self.identity)

    def load(self, path: Path | str) -> None:
        """Takes up a training where :meth:`save` left it."""
        self.iteration = load_training(Path(path), self.sampler, self.optimizer, self.identity)
        self._halfway = False
        cut_lines(Path(path).parent / METRICS, self.iteration)


@contextmanager
def learning() -> Iterator[None]:
    """Lets the flow network learn, even if the user asks from within ``no_grad`` or ``inference_mode``."""
    with torch.inference_mode(False), torch.enable_grad():
        yield
