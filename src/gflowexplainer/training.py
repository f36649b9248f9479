"""The training loop: rollouts, updates, progress, checkpoints, resume."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.flow import objectives
from gflowexplainer.flow.features import node_features
from gflowexplainer.flow.paper_policy import PaperPolicy
from gflowexplainer.flow.policy import AdditivePolicy, Policy
from gflowexplainer.flow.replay import Replay
from gflowexplainer.flow.sampling import Rollouts, follow_policy, grow_inside, grow_uniformly, roll_out, rollout_keys
from gflowexplainer.instances import Instances
from gflowexplainer.locator import Locator, locator_loss
from gflowexplainer.noise import uniform
from gflowexplainer.persistence import fingerprint, read_checkpoint, write_checkpoint
from gflowexplainer.rewards import ContextReward, PredictionReward, Predictor, RegularizedReward, Reward
from gflowexplainer.rewards.target import Target
from gflowexplainer.segments import segment_logsumexp
from gflowexplainer.settings import Settings

Record = dict[str, float | int]
Callback = Callable[["Trainer", Record], None]
CHECKPOINT = "checkpoint.safetensors"
METRICS = "metrics.jsonl"
# Names of independent random streams.
_TRAINING, _SHUFFLING, _LOCATING, _CALIBRATING, _REPLAYING = range(5)


class Trainer:
    """Trains a flow network on instances of one model.

    Args:
        predictor: The explained model.
        instances: What to train on.
        settings: All settings.
        embedding: The explained model's embeddings at the nodes of the instances, shape ``[n, H]``. Needed where
            the settings let the policy, the locator or the reward see them.
        target: What is to be held; the model's own prediction if not given.
    """

    def __init__(
        self,
        predictor: Predictor,
        instances: Instances,
        settings: Settings,
        *,
        embedding: Tensor | None = None,
        target: Target | None = None,
    ) -> None:
        self.predictor, self.instances, self.settings = predictor, instances, settings
        self.embedding = embedding
        self.reward = build_reward(predictor, instances, settings, embedding, target)
        self.features = policy_features(predictor, instances, settings, embedding)
        needs_locator = instances.level == "graph" and settings.start == "locator"
        self._refuse_unfit_objective(needs_locator)
        if needs_locator and embedding is None:
            raise ConfigError("A locator needs the explained model's embeddings. Pass 'embedding'.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.policy = build_policy(self.features.size(1), instances.num_nodes, settings)
            self.locator = Locator(embedding.size(1)) if needs_locator and embedding is not None else None
            self.partition = build_partition(settings, self.features.size(1))
        for module in (self.policy, self.locator, self.partition):
            if module is not None:
                module.to(instances.device)
        self.policy.fit_scale(self.features)
        self.optimizer = torch.optim.AdamW(
            self._parameter_groups(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self._base_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.replay = Replay(len(instances), settings.replays, settings.max_nodes, instances.device)
        self.iteration = 0
        self._calibrate()

    def _refuse_unfit_objective(self, needs_locator: bool) -> None:
        unrooted = self.instances.level == "graph" and not needs_locator
        if unrooted and self.settings.objective in ("detailed_balance", "subtrajectory_balance"):
            raise ConfigError(
                f"'{self.settings.objective}' compares states that may stop, and where explanations may start "
                "anywhere the first state may not. Use 'log_partition_variance' or 'flow_matching', or "
                "start='locator'."
            )

    def _parameter_groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = [{"params": list(self.policy.parameters())}]
        if self.locator is not None:
            groups.append({"params": list(self.locator.parameters())})
        if self.partition is not None:
            # The paper's rate for Z; a partition function is far away and one number, so it may run.
            groups.append({"params": list(self.partition.parameters()), "lr": 0.1})
        return groups

    def _calibrate(self) -> None:
        """Shows the reward random connected subgraphs, so that it can measure each instance's spread."""
        if not self.settings.relative_beta:
            return
        every = torch.arange(len(self.instances), device=self.instances.device).repeat_interleave(8)
        start = self.starts(every)
        keys = rollout_keys(self.instances, every, self.settings.seed, _CALIBRATING)
        grown = roll_out(self.instances, every, start, self.settings.max_nodes, grow_uniformly, keys)
        self.reward.calibrate(grown.states.subgraphs[torch.nonzero(grown.states.size > 0).flatten()])

    @property
    def batches_per_epoch(self) -> int:
        """Updates in one pass over the instances."""
        return math.ceil(len(self.instances) / self.settings.batch_size)

    @property
    def num_iterations(self) -> int:
        """Updates of the whole training."""
        return self.settings.epochs * self.batches_per_epoch

    def starts(self, instance: Tensor) -> Tensor | None:
        """Gives the start node of rollouts on ``instance`` ``[R]``, or ``None`` where they begin with nothing."""
        if self.instances.level == "node":
            return self.instances.center[instance]
        if self.locator is None or self.embedding is None:
            return None
        return self.locator.start(self.instances, self.embedding)[instance]

    def sample(self, instance: Tensor, *stream: int, explore: bool = False) -> Rollouts:
        """Grows subgraphs by the policy, one for each entry of ``instance``.

        Args:
            instance: Instance of each rollout, shape ``[R]``.
            *stream: Integers that, with the seed, name the random draw.
            explore: Whether to use the exploration settings.
        """
        settings = self.settings
        with torch.no_grad():
            encoding = self.policy.encode(self.instances, self.features)
        choose = follow_policy(
            self.policy,
            encoding,
            temperature=settings.temperature if explore else 1.0,
            epsilon=settings.epsilon if explore else 0.0,
        )
        keys = rollout_keys(self.instances, instance, settings.seed, *stream)
        return roll_out(self.instances, instance, self.starts(instance), settings.max_nodes, choose, keys)

    def loss(self, rollouts: Rollouts) -> Tensor:
        """Evaluates the objective on all states of rollouts, with gradients."""
        return objective_value(self, rollouts)

    def step(self) -> Record:
        """Performs one update and tells how it went."""
        settings, began = self.settings, time.perf_counter()
        batch = self._batch()
        rollouts = self.sample(batch.repeat_interleave(settings.rollouts), _TRAINING, self.iteration, explore=True)
        loss = self.loss(rollouts)
        again = self.replay.draw(batch, settings.seed, _REPLAYING, self.iteration)
        if len(again):
            keys = rollout_keys(self.instances, again.instance, settings.seed, _REPLAYING, self.iteration)
            start = self.starts(again.instance)
            loss = loss + self.loss(
                roll_out(self.instances, again.instance, start, settings.max_nodes, grow_inside(again), keys)
            )
        record: Record = {"iteration": self.iteration, "loss": float(loss.detach())}
        if not math.isfinite(record["loss"]):
            raise ConfigError(
                f"The loss became {record['loss']} at iteration {self.iteration}. Lower 'learning_rate' or 'beta'."
            )
        self._descend(loss)
        ends = rollouts.subgraphs
        score = self.reward.log_score(ends)
        self.replay.add(ends, score)
        self.iteration += 1
        if self.locator is not None and self.iteration % self.batches_per_epoch == 0:
            record["locator_loss"] = self._train_locator()
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
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.settings.clip_norm)
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
        assert self.locator is not None and self.embedding is not None
        settings, instances = self.settings, self.instances
        every = torch.arange(len(instances), device=instances.device)
        draw = uniform(settings.seed, _LOCATING, self.iteration, every)
        count = max(1, round(settings.locator_share * len(instances)))
        node = torch.nonzero(torch.isin(instances.owner, torch.argsort(draw)[:count])).flatten()
        graph = instances.owner[node]
        with torch.no_grad():
            encoding = self.policy.encode(instances, self.features)
        keys = rollout_keys(instances, graph, settings.seed, _LOCATING, self.iteration)
        grown = roll_out(instances, graph, node, settings.max_nodes, follow_policy(self.policy, encoding), keys)
        score = self.reward.log_score(grown.subgraphs)
        rating = self.locator(instances, self.embedding)[node]
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
                record = self.step()
                if callback is not None:
                    callback(self, record)
                pending.append(record)
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
        """Writes the checkpoint, then the curves up to it; what is beyond it is forgotten on resume."""
        self.save(folder / CHECKPOINT)
        _append_lines(folder / METRICS, pending)
        pending.clear()

    def save(self, path: Path | str) -> None:
        """Writes everything that is needed to go on, in one file."""
        tensors = {f"policy/{name}": value for name, value in self.policy.state_dict().items()}
        for label, module in (("locator", self.locator), ("partition", self.partition)):
            if module is not None:
                tensors |= {f"{label}/{name}": value for name, value in module.state_dict().items()}
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
            self.policy.load_state_dict(groups["policy"])
            for label, module in (("locator", self.locator), ("partition", self.partition)):
                if module is not None:
                    module.load_state_dict(groups[label])
            self._load_optimizer(groups.get("optimizer", {}))
            self.replay.load_tensors(groups.get("replay", {}))
            self.reward.load_tensors(groups["reward"])
            self.iteration = int(meta["iteration"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"The checkpoint '{path}' does not fit this training: {error}") from error
        _cut_lines(path.parent / METRICS, self.iteration)

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


def build_policy(in_features: int, num_nodes: int, settings: Settings) -> Policy:
    """Makes the policy that the settings describe."""
    if settings.policy == "paper":
        return PaperPolicy(
            in_features, hidden=settings.hidden, propagation=settings.propagation, min_nodes=settings.min_nodes
        )
    return AdditivePolicy(
        in_features,
        settings.max_nodes,
        settings.hidden,
        identities=num_nodes if settings.node_identities else 0,
        min_nodes=settings.min_nodes,
    )


def build_partition(settings: Settings, in_features: int) -> nn.Module | None:
    """Makes what learns log Z: one number, or a three-layer MLP of the start node (hidden width 128)."""
    if settings.objective == "trajectory_balance":
        return nn.Linear(1, 1)
    if settings.objective == "conditional_trajectory_balance":
        return nn.Sequential(
            nn.Linear(in_features, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
        )
    return None


def build_reward(
    predictor: Predictor,
    instances: Instances,
    settings: Settings,
    embedding: Tensor | None = None,
    target: Target | None = None,
) -> Reward:
    """Makes the reward that the settings describe."""
    shared: dict[str, Any] = {
        "target": target,
        "beta": settings.beta,
        "relative": settings.relative_beta,
        "min_nodes": settings.min_nodes,
        "removal": settings.removal,
    }
    if settings.reward == "prediction":
        return PredictionReward(predictor, instances, **shared)
    if settings.reward == "regularized":
        if embedding is None:
            raise ConfigError("The regularised reward needs the explained model's embeddings. Pass 'embedding'.")
        return RegularizedReward(predictor, instances, embedding=embedding, **shared)
    return ContextReward(
        predictor,
        instances,
        num_contexts=settings.num_contexts,
        keep_probability=settings.keep_probability,
        seed=settings.seed,
        **shared,
    )


def policy_features(
    predictor: Predictor, instances: Instances, settings: Settings, embedding: Tensor | None
) -> Tensor:
    """Gives the policy's input at every node, shape ``[n, D]``; the paper's policy sees ``x`` alone."""
    if settings.policy == "paper" and not settings.model_embeddings:
        return instances.x.float()
    if settings.model_embeddings and embedding is None:
        raise ConfigError(
            "The policy is to see the explained model's embeddings. Pass 'embedding' or set model_embeddings=False."
        )
    return node_features(instances, embedding if settings.model_embeddings else None, predictor.num_hops)


def objective_value(trainer: Trainer, rollouts: Rollouts) -> Tensor:
    """Evaluates flows, rewards and parents at the visited states and hands them to the objective."""
    settings, states = trainer.settings, rollouts.states
    encoding = trainer.policy.encode(trainer.instances, trainer.features)
    action, stop = trainer.policy.log_flows(encoding, states)
    out = torch.logaddexp(stop, segment_logsumexp(action, states.frontier_state, len(states)))
    parents = states.parents(settings.parents)
    inflow = None
    if settings.objective in ("flow_matching", "raw_flow_matching"):
        inflow = torch.logsumexp(trainer.policy.log_inflows(encoding, states, parents), dim=1)
    can_stop = states.size > 0
    reward = torch.zeros_like(out)
    ends = torch.nonzero(can_stop).flatten()
    reward[ends] = trainer.reward.log_reward(states.subgraphs[ends], states.can_grow[ends])
    instance = states.instance[rollouts.last]
    start = trainer.starts(instance)
    flows = objectives.VisitedFlows(
        out=out,
        stop=stop,
        taken=action[rollouts.chosen.clamp(min=0)] if action.numel() else out,
        inflow=inflow,
        log_reward=reward,
        can_stop=can_stop,
        num_parents=parents.sum(dim=1).clamp(min=1),
        successor=rollouts.successor,
        rollout=rollouts.rollout,
        depth=states.size - int(states.rooted),
        group=instance if start is None else start,
    )
    if trainer.partition is None:
        return getattr(objectives, settings.objective)(flows)
    if settings.objective == "trajectory_balance":
        log_partition = trainer.partition(torch.zeros(1, 1, device=out.device))
    else:
        at = trainer.policy.standardize(trainer.features)
        log_partition = trainer.partition(at[start] if start is not None else at[trainer.instances.ptr[instance]])
    return objectives.trajectory_balance(flows, log_partition)


def _append_lines(path: Path, records: list[Record]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def _cut_lines(path: Path, iteration: int) -> None:
    """Drops the lines of updates that the checkpoint does not know of."""
    if not path.exists():
        return
    lines = [line for line in path.read_text().splitlines() if _iteration_of(line) < iteration]
    path.write_text("".join(line + "\n" for line in lines))


def _iteration_of(line: str) -> float:
    try:
        return json.loads(line)["iteration"]
    except (ValueError, KeyError, TypeError):
        return math.inf


def _mismatch(path: Path, name: str, theirs: Any, mine: Any) -> str:
    if name == "model":
        return f"The checkpoint '{path}' belongs to another model, or to other weights of it. Use another folder."
    if name == "instances":
        return f"The checkpoint '{path}' was trained on other instances. Use another folder."
    theirs = theirs if isinstance(theirs, dict) else {}
    different = sorted(key for key in {*theirs, *mine} if theirs.get(key) != mine.get(key))
    shown = ", ".join(f"{key}: {theirs.get(key)!r} there, {mine.get(key)!r} here" for key in different)
    return f"The checkpoint '{path}' was made with other settings ({shown}). Use the same ones or another folder."
