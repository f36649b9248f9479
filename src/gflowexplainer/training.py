"""The training loop: rollouts, updates, progress, checkpoints, resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.flow import objectives
from gflowexplainer.flow.policy import log_outflow
from gflowexplainer.flow.replay import Replay
from gflowexplainer.flow.sampling import Rollouts, grow_inside, grow_uniformly, roll_out, rollout_keys
from gflowexplainer.instances import Instances
from gflowexplainer.interrupts import interrupts_wait
from gflowexplainer.locator import locator_loss
from gflowexplainer.network import FlowNetwork, NetworkInputs
from gflowexplainer.noise import uniform
from gflowexplainer.persistence import fingerprint, read_checkpoint, write_checkpoint
from gflowexplainer.records import Record, append_lines, cut_lines
from gflowexplainer.rewards import Predictor, Reward
from gflowexplainer.rewards.building import build_reward, raw_evidence
from gflowexplainer.rewards.consensus import Consensus, ConsensusReward, learn_consensus
from gflowexplainer.rewards.reward import REMOVALS
from gflowexplainer.rewards.target import Target
from gflowexplainer.settings import Settings
from gflowexplainer.subgraphs import Subgraphs

Callback = Callable[["Trainer", Record], None]
CHECKPOINT = "checkpoint.safetensors"
METRICS = "metrics.jsonl"
# Names of independent random streams.
_TRAINING, _SHUFFLING, _LOCATING, _CALIBRATING, _REPLAYING, _MEASURING = range(6)
_MEASURED = 1024
"""Rollouts that a consensus is learned from, about, over all instances."""


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
    ) -> None:
        self.predictor, self.settings = predictor, settings
        target = Target.of(predictor, instances) if target is None else target
        self.consensus = self._find_consensus(instances, evidence, target, weights)
        self.reward = build_reward(
            settings,
            predictor,
            instances,
            embedding=embedding,
            evidence=evidence,
            target=target,
            consensus=self.consensus,
        )
        calibrate(self.reward, settings)
        values = self.reward.values() if isinstance(self.reward, ConsensusReward) else None
        self.inputs = NetworkInputs.of(instances, embedding, settings, predictor.num_hops, values)
        self.network = FlowNetwork(settings, self.inputs)
        if weights is not None:
            own = {name: value for name, value in weights.items() if not name.startswith("consensus/")}
            self.network.load_state_dict(own)
        self.optimizer = torch.optim.AdamW(
            self._parameter_groups(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self._base_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.replay = Replay(len(instances), settings.replays, settings.max_nodes, instances.device)
        self.iteration = 0
        # Set while weights and bookkeeping disagree; such a state is never stored.
        self._halfway = False

    def _find_consensus(
        self, instances: Instances, evidence: Tensor | None, target: Target, weights: Mapping[str, Tensor] | None
    ) -> Consensus | None:
        """Takes over what an earlier training agreed on, or learns it from random subgraphs of these instances."""
        settings = self.settings
        if settings.reward != "consensus":
            return None
        if weights is not None:
            return Consensus.from_tensors(weights, instances.device)
        either = settings.removal == "auto" and instances.level == "graph"
        chosen = "induced" if settings.removal == "auto" else settings.removal
        return learn_consensus(
            self.predictor,
            instances,
            raw_evidence(instances, evidence),
            target,
            random_subgraphs(instances, settings, min(max(_MEASURED // len(instances), 2), 32), _MEASURING),
            removals=REMOVALS if either else (chosen,),
            # A graph's default class is held by nothing in it: only the other classes show what the model looks at.
            pooling=math.inf if instances.level == "graph" else settings.pooling,
            num_contexts=settings.num_contexts,
            keep_probability=settings.keep_probability,
            seed=settings.seed,
        )

    def weights(self) -> dict[str, Tensor]:
        """Gives all that was learned: the network and, where there is one, the consensus."""
        own = {name: value.detach().cpu() for name, value in self.network.state_dict().items()}
        agreed = {} if self.consensus is None else self.consensus.tensors()
        return own | {name: value.cpu() for name, value in agreed.items()}

    @property
    def instances(self) -> Instances:
        """What is trained on."""
        return self.inputs.instances

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

    def loss(self, rollouts: Rollouts) -> Tensor:
        """Evaluates the objective on all states that rollouts visited, with gradients."""
        policy, settings, states = self.network.policy, self.settings, rollouts.states
        encoding = policy.encode(self.instances, self.inputs.features)
        action, stop = policy.log_flows(encoding, states)
        parents = states.parents(settings.parents)
        inflow = None
        if settings.objective in ("flow_matching", "raw_flow_matching"):
            inflow = torch.logsumexp(policy.log_inflows(encoding, states, parents), dim=1)
        can_stop = states.size > 0
        ends = torch.nonzero(can_stop).flatten()
        reward = torch.zeros_like(stop)
        reward[ends] = self.reward.log_reward(states.subgraphs[ends], states.can_grow[ends]).to(reward.dtype)
        instance = states.instance[rollouts.last]
        start = states.members[rollouts.last, 0] if states.rooted else None
        flows = objectives.VisitedFlows(
            out=log_outflow(states, action, stop),
            stop=stop,
            taken=action[rollouts.chosen.clamp(min=0)] if action.numel() else stop,
            inflow=inflow,
            log_reward=reward,
            can_stop=can_stop,
            num_parents=parents.sum(dim=1).clamp(min=1),
            successor=rollouts.successor,
            rollout=rollouts.rollout,
            depth=states.size - int(states.rooted),
            group=instance if start is None else start,
        )
        if self.network.partition is None:
            return getattr(objectives, settings.objective)(flows)
        return objectives.trajectory_balance(flows, self.network.log_partition(self.inputs, instance, start))

    def step(self) -> Record:
        """Performs one update and tells how it went."""
        settings, began = self.settings, time.perf_counter()
        batch = self._batch()
        several = batch.repeat_interleave(settings.rollouts)
        rollouts = self.network.sample(self.inputs, several, _TRAINING, self.iteration, explore=True)
        loss = self.loss(rollouts)
        again = self.replay.draw(batch, settings.seed, _REPLAYING, self.iteration)
        if len(again):
            keys = rollout_keys(self.instances, again.instance, settings.seed, _REPLAYING, self.iteration)
            start = self.network.starts(self.inputs, again.instance)
            loss = loss + self.loss(
                roll_out(self.instances, again.instance, start, settings.max_nodes, grow_inside(again), keys)
            )
        record: Record = {"iteration": self.iteration, "loss": float(loss.detach())}
        if not math.isfinite(record["loss"]):
            raise ConfigError(
                f"The loss became {record['loss']} at iteration {self.iteration}. Lower 'learning_rate' or 'beta'."
            )
        ends = rollouts.subgraphs
        score = self.reward.log_score(ends)
        self._halfway = True
        self._descend(loss)
        self.replay.add(ends, score)
        self.iteration += 1
        if self.network.locator is not None and self.iteration % self.batches_per_epoch == 0:
            record["locator_loss"] = self._train_locator()
        self._halfway = False
        record |= {"log_score": float(score.mean()), "size": float(ends.size.float().mean())}
        record["seconds"] = time.perf_counter() - began
        return record

    def _descend(self, loss: Tensor) -> None:
        progress = self.iteration / max(self.num_iterations - 1, 1)
        final = self.settings.final_rate
        factor = final + (1 - final) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        for group, rate in zip(self.optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = rate * factor
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
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
        node = torch.nonzero(torch.isin(instances.owner, torch.argsort(draw)[:count])).flatten()
        graph = instances.owner[node]
        grown = self.network.sample(self.inputs, graph, _LOCATING, self.iteration, start=node)
        score = self.reward.log_score(grown.subgraphs)
        rating = locator(instances, embedding)[node]
        loss = locator_loss(rating, score, graph, len(instances))
        self._descend(loss)
        return float(loss.detach())

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
            callback: Called after each update with the trainer and the record of the update; it may add to it.
        """
        path = None if folder is None else Path(folder)
        if path is not None and (path / CHECKPOINT).exists():
            self.load(path / CHECKPOINT)
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
        tensors = {f"network/{name}": value for name, value in self.network.state_dict().items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{name}": value for name, value in state.items()}
        tensors |= {f"replay/{name}": value for name, value in self.replay.tensors().items()}
        tensors |= {f"reward/{name}": value for name, value in self.reward.tensors().items()}
        write_checkpoint(Path(path), tensors, self._identity() | {"iteration": self.iteration})

    def load(self, path: Path | str) -> None:
        """Takes up a training where :meth:`save` left it."""
        path = Path(path)
        tensors, meta = read_checkpoint(path, self.instances.device)
        for name, mine in self._identity().items():
            if meta.get(name) != mine:
                raise CheckpointError(_mismatch(path, name, meta.get(name), mine))
        groups: dict[str, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            label, _, rest = name.partition("/")
            groups.setdefault(label, {})[rest] = value
        try:
            self.network.load_state_dict(groups["network"])
            self._load_optimizer(groups.get("optimizer", {}))
            self.replay.load_tensors(groups.get("replay", {}))
            self.reward.load_tensors(groups["reward"])
            self.iteration, self._halfway = int(meta["iteration"]), False
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"The checkpoint '{path}' does not fit this training: {error}") from error
        cut_lines(path.parent / METRICS, self.iteration)

    def _load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state = self.optimizer.state_dict()
        state["state"] = {}
        for name, value in tensors.items():
            number, _, field = name.partition("/")
            state["state"].setdefault(int(number), {})[field] = value
        self.optimizer.load_state_dict(state)

    def _identity(self) -> dict[str, Any]:
        """Names what a checkpoint must agree on."""
        return {
            "model": fingerprint(self.predictor.model),
            "instances": int(self.instances.key.sum() + self.instances.edge_id.sum()),
            "settings": self.settings.to_dict(),
        }


def calibrate(reward: Reward, settings: Settings) -> None:
    """Shows a reward random connected subgraphs, so that it can measure the spread of each instance.

    Does nothing unless the reward's exponent is relative to that spread.
    """
    if reward.relative:
        # Of full size: smaller ones differ by their size above all, and there are few of them.
        reward.calibrate(random_subgraphs(reward.instances, settings, 32, _CALIBRATING, ends=True))


def random_subgraphs(
    instances: Instances, settings: Settings, rollouts: int, stream: int, *, ends: bool = False
) -> Subgraphs:
    """Grows so many ``rollouts`` of each instance at random and gives every state on their way, repeats included.

    They grow from the explained node, or from anywhere in a graph. With ``ends``, only what they grew to is given.
    """
    every = torch.arange(len(instances), device=instances.device).repeat_interleave(rollouts)
    keys = rollout_keys(instances, every, settings.seed, stream)
    start = instances.center[every] if instances.level == "node" else None
    grown = roll_out(instances, every, start, settings.max_nodes, grow_uniformly, keys)
    if ends:
        return grown.subgraphs
    return grown.states.subgraphs[torch.nonzero(grown.states.size > 0).flatten()]


def _mismatch(path: Path, name: str, theirs: Any, mine: Any) -> str:
    if name == "model":
        return f"The checkpoint '{path}' belongs to another model, or to other weights of it. Use another folder."
    if name == "instances":
        return f"The checkpoint '{path}' was trained on other instances. Use another folder."
    theirs = theirs if isinstance(theirs, dict) else {}
    different = sorted(key for key in {*theirs, *mine} if theirs.get(key) != mine.get(key))
    shown = ", ".join(f"{key}: {theirs.get(key)!r} there, {mine.get(key)!r} here" for key in different)
    return f"The checkpoint '{path}' was made with other settings ({shown}). Use the same ones or another folder."
