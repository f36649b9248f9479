"""The training loop: rollouts, updates, progress, checkpoints, resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow import objectives
from gflowexplainer.flow.locator import locator_loss
from gflowexplainer.flow.measure import log_steps
from gflowexplainer.flow.network import FlowNetwork, NetworkInputs
from gflowexplainer.flow.policy import log_outflow
from gflowexplainer.flow.replay import Replay
from gflowexplainer.flow.sampling import Rollouts, grow_inside, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.rewards.calibration import calibrate, find_consensus
from gflowexplainer.rewards.consensus import Consensus, ConsensusReward
from gflowexplainer.rewards.factory import build_reward, raw_evidence
from gflowexplainer.settings import Settings
from gflowexplainer.training.checkpoint import load_training, save_training
from gflowexplainer.training.curves import METRICS, Record, append_lines, cut_lines
from gflowexplainer.training.distributed import Fabric, Ranks, num_terms
from gflowexplainer.training.interrupts import interrupts_wait

Callback = Callable[["Trainer", Record], None]
CHECKPOINT = "checkpoint.safetensors"
# Names of independent random streams; those of trials are others.
_TRAINING, _SHUFFLING, _LOCATING, _REPLAYING = 0, 1, 2, 4


class Trainer:
    """Trains a flow network on instances of one model.

    Args:
        predictor: The explained model.
        instances: What to train on.
        settings: All settings.
        embedding: The explained model's embeddings at the nodes of the instances, shape ``[n, H]``. Needed where
            the settings let the policy, the locator or the reward see them.
        evidence: What the model predicts at the nodes of the instances, shape ``[n, C]``; the consensus reward needs it
            at node level.
        target: What is to be held; the model's own prediction if not given.
        weights: What :meth:`weights` gave after an earlier training, to begin with and to see these instances by.
        consensus: What holds predictions in general, if it was learned elsewhere.
        fabric: A Fabric that was launched, where several processes train together; each makes a trainer alike.
    """

    def __init__(
        self,
        predictor: Predictor,
        instances: Instances,
        settings: Settings,
        *,
        embedding: Tensor | None = None,
        evidence: Tensor | None = None,
        target: Target | None = None,
        weights: Mapping[str, Tensor] | None = None,
        consensus: Consensus | None = None,
        fabric: Fabric | None = None,
    ) -> None:
        self.predictor, self.settings, self.ranks = predictor, settings, Ranks(fabric)
        target = Target.of(predictor, instances) if target is None else target
        raw = None
        if settings.reward == "consensus":
            raw = raw_evidence(predictor, instances, target, evidence)
            if weights is not None:
                consensus = Consensus.from_tensors(weights, instances.device)
            elif consensus is None:
                consensus = find_consensus(predictor, instances, settings, raw, target)
        self.reward = build_reward(
            settings,
            predictor,
            instances,
            embedding=embedding,
            raw=raw,
            target=target,
            consensus=consensus,
        )
        calibrate(self.reward, instances, settings)
        values = None
        if isinstance(self.reward, ConsensusReward) and consensus is not None:
            if weights is None:
                consensus = replace(consensus, spread=float(self.reward.spread.median()))
            self.reward.bound_spread(consensus.spread)
            values = self.reward.values()
        self.consensus = consensus
        self.inputs = NetworkInputs.of(instances, embedding, settings, predictor.num_hops, values)
        own = None
        if weights is not None:
            own = {name: value for name, value in weights.items() if not name.startswith("consensus/")}
        self.network = FlowNetwork(settings, self.inputs, own)
        self.ranks.copy(self.network)
        self.reward.exchange(self.ranks)
        self.replay = Replay(len(instances), settings.replays, settings.max_nodes, instances.device)
        self.iteration = 0
        # Set while weights and bookkeeping disagree; such a state is never stored.
        self._halfway = False

    def weights(self) -> dict[str, Tensor]:
        """Gives all that was learned: the network and, where there is one, the consensus."""
        own = {name: value.detach().cpu() for name, value in self.network.state_dict().items()}
        agreed = {} if self.consensus is None else self.consensus.tensors()
        return own | {name: value.cpu() for name, value in agreed.items()}

    @property
    def instances(self) -> Instances:
        """What is trained on."""
        return self.inputs.instances

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

    def log_rewards(self, rollouts: Rollouts) -> Tensor:
        """Gives the log-reward of every state that rollouts visited, shape ``[U]``; 0 for the empty subgraph."""
        states = rollouts.states
        ends = torch.nonzero(states.size > 0).flatten()
        value = self.reward.log_reward(states.subgraphs[ends], states.can_grow[ends])
        return value.new_zeros(len(states)).index_copy_(0, ends, value)

    def loss(self, rollouts: Rollouts, encoding: Any = None, log_reward: Tensor | None = None) -> Tensor:
        """Evaluates the objective on all states that rollouts visited, with gradients.

        Args:
            rollouts: The rollouts.
            encoding: What the policy made of their instances, with gradients, if it is known already.
            log_reward: Their :meth:`log_rewards`, if they are known already.
        """
        policy, settings, states = self.network.policy, self.settings, rollouts.states
        if encoding is None:
            encoding = policy.encode(self.instances, self.inputs.features)
        action, stop = policy.log_flows(encoding, states)
        inflow = None
        if settings.objective in ("flow_matching", "raw_flow_matching"):
            parents = states.parents(settings.parents)
            inflow = torch.logsumexp(policy.log_inflows(encoding, states, parents), dim=1)
        reward = self.log_rewards(rollouts) if log_reward is None else log_reward
        at, last = rollouts.state, rollouts.state[rollouts.last]
        instance = states.instance[last]
        start = states.members[last, 0] if states.rooted else None
        flows = objectives.VisitedFlows(
            out=log_outflow(states, action, stop)[at],
            stop=stop[at],
            taken=action[rollouts.chosen.clamp(min=0)] if action.numel() else stop[at],
            inflow=None if inflow is None else inflow[at],
            log_reward=reward[at].to(stop.dtype),
            can_stop=states.size[at] > 0,
            measure=log_steps(rollouts, settings.measure, settings.parents),
            successor=rollouts.successor,
            rollout=rollouts.rollout,
            depth=states.size[at] - int(states.rooted),
            group=instance if start is None else start,
        )
        if self.network.partition is None:
            return getattr(objectives, settings.objective)(flows)
        return objectives.trajectory_balance(flows, self.network.log_partition(self.inputs, instance, start))

    def step(self) -> Record:
        """Performs one update and tells how it went; several processes do so together, each with its instances."""
        began, batch = time.perf_counter(), self.ranks.mine(self._batch())
        encoding = self.network.policy.encode(self.instances, self.inputs.features, batch)
        grown = [self._grow(batch, encoding), self._regrow(batch)]
        rewards = [None if rollouts is None else self.log_rewards(rollouts) for rollouts in grown]
        ends, score = self._ends(grown[0])
        record: Record = {"iteration": self.iteration}
        for number in range(self.settings.descents):
            if number:
                encoding = self.network.policy.encode(self.instances, self.inputs.features, batch)
            parts = [self._mean_loss(*each, encoding) for each in zip(grown, rewards, strict=True)]
            parts += [_mean(score), _mean(ends.size.to(score))]
            (fresh, again, *_), values = self.ranks.weigh(*parts)
            loss = values[0] + values[1]
            if not math.isfinite(loss):
                raise ConfigError(
                    f"The loss became {loss} at iteration {self.iteration}. Lower 'learning_rate' or 'beta'."
                )
            record = {"loss": loss, "log_score": values[2], "size": values[3]} | record
            self._find_gradients(fresh + again)
            self._halfway = True
            self._descend()
        self.reward.exchange(self.ranks)
        self.replay.add(ends, score)
        self.iteration += 1
        if self.network.locator is not None and self.iteration % self.batches_per_epoch == 0:
            record["locator_loss"] = self._train_locator()
        self._halfway = False
        record["seconds"] = time.perf_counter() - began
        return record

    def _grow(self, batch: Tensor, encoding: Any) -> Rollouts | None:
        """Samples from the instances of ``batch``; ``None`` if a process has none."""
        if not batch.numel():
            return None
        several = batch.repeat_interleave(self.settings.rollouts)
        return self.network.sample(self.inputs, several, _TRAINING, self.iteration, explore=True, encoding=encoding)

    def _regrow(self, batch: Tensor) -> Rollouts | None:
        """Builds remembered subgraphs of the instances again, in another order."""
        stream = (self.settings.seed, _REPLAYING, self.iteration)
        again = self.replay.draw(batch, *stream)
        if not len(again):
            return None
        keys = rollout_keys(self.instances, again.instance, *stream)
        start = self.network.starts(self.inputs, again.instance)
        return roll_out(self.instances, again.instance, start, self.settings.max_nodes, grow_inside(again), keys)

    def _mean_loss(self, rollouts: Rollouts | None, log_reward: Tensor | None, encoding: Any) -> tuple[Tensor, Tensor]:
        """Gives the loss, which is a mean, and over how many terms."""
        if rollouts is None:
            nothing = torch.zeros((), device=self.instances.device)
            return nothing, nothing
        return self.loss(rollouts, encoding, log_reward), num_terms(self.settings.objective, rollouts)

    def _ends(self, rollouts: Rollouts | None) -> tuple[Subgraphs, Tensor]:
        """Gives what rollouts ended in, with log-scores; with a memory to fill, that of all processes' rollouts."""
        if rollouts is None:
            none = torch.zeros((0, self.settings.max_nodes), dtype=torch.long, device=self.instances.device)
            ends, score = Subgraphs(none[:, 0], none), self.reward.spread[:0]
        else:
            ends = rollouts.subgraphs
            score = self.reward.log_score(ends)
        if not self.replay.draws:
            return ends, score
        instance, members, score = self.ranks.rows(ends.instance, ends.members, score)
        order = torch.argsort(instance, stable=True)
        return Subgraphs(instance[order], members[order]), score[order]

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
        order = torch.argsort(uniform(self.settings.seed, _SHUFFLING, epoch, every))
        begin = number * self.settings.batch_size
        return order[begin : begin + self.settings.batch_size].sort().values

    def _train_locator(self) -> float:
        """Grows from every node of some graphs and teaches the locator which ones it paid at (Algorithm 2)."""
        locator, embedding = self.network.locator, self.inputs.embedding
        assert locator is not None
        assert embedding is not None
        settings, instances = self.settings, self.instances
        every = torch.arange(len(instances), device=instances.device)
        draw = uniform(settings.seed, _LOCATING, self.iteration, every)
        count = max(1, round(settings.locator_share * len(instances)))
        picked = self.ranks.mine(torch.argsort(draw)[:count])
        loss = torch.zeros((), device=instances.device)
        if picked.numel():
            node = torch.nonzero(torch.isin(instances.owner, picked)).flatten()
            graph = instances.owner[node]
            grown = self.network.sample(self.inputs, graph, _LOCATING, self.iteration, start=node)
            score = self.reward.log_score(grown.subgraphs)
            loss = locator_loss(locator(instances, embedding)[node], score, graph, len(instances))
        (share,), (value,) = self.ranks.weigh((loss, torch.tensor(picked.numel(), device=loss.device)))
        self._find_gradients(share)
        self.reward.exchange(self.ranks)
        self._descend()
        return value

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
            checkpoint_seconds: Time between two checkpoints.
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
        pending: list[Record] = []
        saved = time.monotonic()
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

    def _store(self, folder: Path, pending: list[Record]) -> None:
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
        save_training(self, Path(path))

    def load(self, path: Path | str) -> None:
        """Takes up a training where :meth:`save` left it."""
        load_training(self, Path(path))
        self._halfway = False
        cut_lines(Path(path).parent / METRICS, self.iteration)


def _mean(values: Tensor) -> tuple[Tensor, Tensor]:
    """Gives the mean of values ``[N]``, 0 if there are none, and their number."""
    return values.sum() / max(values.numel(), 1), torch.tensor(values.numel(), device=values.device)


@contextmanager
def learning() -> Iterator[None]:
    """Lets the flow network learn, even if the user asks from within ``no_grad`` or ``inference_mode``."""
    with torch.inference_mode(False), torch.enable_grad():
        yield
