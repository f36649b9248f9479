"""Rollouts of 64 instances x 8 a second on Tree-Cycles, and where the time of a training iteration goes.

The peer of the batched rollouts are the same rollouts one at a time. The shares are exclusive: time in a part does
not count for the part that called it. Everything runs on one thread and is measured in its processor time.
"""

from __future__ import annotations

import inspect
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.measuring import environment, interleaved, ratio, results_folder, threads, write_json
from gflowbench.datasets import load
from gflowbench.explainers.interface import Subject
from gflowbench.models import train
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.training.trainer import Trainer

INSTANCES = 64
ROLLOUTS = 8
SEED = 0
PARTS = {
    "rollouts": "rollouts",
    "rewards": "rewards",
    "prepared": "what all descents on the rollouts share",
    "forward": "policy and objective, forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "rest": "rest",
}
"""The parts of an iteration, as they are stored and as they are shown."""


class Stopwatch:
    """Adds up the time inside functions, each without the watched functions that it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner: list[float] = []

    def watch(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps ``function`` so that its own time counts for ``part``."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            began = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                taken = time.thread_time() - began
                self.seconds[part] += taken - self._inner.pop()
                if self._inner:
                    self._inner[-1] += taken

        return watched

    @contextmanager
    def placed(self, parts: dict[str, list[tuple[Any, str]]]) -> Iterator[None]:
        """Watches functions, given as owner and name, for a block."""
        with ExitStack() as stack:
            for part, functions in parts.items():
                for owner, name in functions:
                    watched = self.watch(part, getattr(owner, name))
                    bound = isinstance(inspect.getattr_static(owner, name), classmethod | staticmethod)
                    stack.enter_context(patch.object(owner, name, staticmethod(watched) if bound else watched))
            yield


def make_trainer(fast: bool) -> Trainer:
    """Makes the default training on 64 motif nodes of a generated Tree-Cycles, with a GCN trained on it."""
    benchmark = load("tree-cycles", source="generated")
    model = train("gcn", benchmark, seed=SEED, progress=False, max_epochs=10 if fast else 100).model
    nodes = benchmark.motif_nodes()
    spread = torch.linspace(0, nodes.numel() - 1, INSTANCES).long()
    subject = Subject.of(model, benchmark, nodes[spread])
    settings = Settings(max_nodes=subject.max_nodes, batch_size=INSTANCES, rollouts=ROLLOUTS, seed=SEED)
    return Trainer(FlowSampler(settings, subject))


def time_rollouts(trainer: Trainer, repeats: int, alone: int = 16) -> dict[str, Any]:
    """Times batched rollouts against single ones; both are spared encoding the instances."""
    network, inputs = trainer.network, trainer.sampler.network_inputs
    every = torch.arange(INSTANCES).repeat_interleave(ROLLOUTS)
    with torch.no_grad():
        encoding = network.policy.encode(inputs.instances, inputs.features)
    some = every[:: every.numel() // alone]

    def one_at_a_time() -> None:
        for instance in some.split(1):
            network.sample(inputs, instance, encoding=encoding)

    contestants = {"batched": lambda: network.sample(inputs, every, encoding=encoding), "one_at_a_time": one_at_a_time}
    seconds = interleaved(contestants, repeats, time.thread_time)
    counts = {"batched": every.numel(), "one_at_a_time": some.numel()}
    per_rollout = {name: [value / counts[name] for value in values] for name, values in seconds.items()}
    grown = network.sample(inputs, every)
    return {
        "rollouts_per_second": {name: 1 / min(values) for name, values in per_rollout.items()},
        "times_faster": ratio(per_rollout, "one_at_a_time", "batched"),
        "mean_size": float(grown.subgraphs.size.float().mean()),
    }


def watched_functions(trainer: Trainer) -> dict[str, list[tuple[Any, str]]]:
    """Says which functions make up each part."""
    reward = type(trainer.reward)
    return {
        "rollouts": [(Trainer, "_grow"), (Trainer, "_regrow")],
        "rewards": [(reward, "log_reward"), (reward, "log_score")],
        "prepared": [(FlowSampler, "objective")],
        "forward": [(Trainer, "_descend_often")],
        "backward": [(torch.Tensor, "backward")],
        "optimizer": [(trainer.optimizer, "step")],
        "rest": [(Trainer, "step")],
    }


def share_time(trainer: Trainer, iterations: int) -> dict[str, Any]:
    """Trains for some iterations and divides their time."""
    watch = Stopwatch()
    with watch.placed(watched_functions(trainer)):
        for _ in range(iterations):
            trainer.step()
    total = sum(watch.seconds.values())
    return {
        "iterations": iterations,
        "seconds_of_an_iteration": total / iterations,
        "shares": {part: watch.seconds[part] / total for part in PARTS},
    }


def print_shares(phases: dict[str, dict[str, Any]]) -> None:
    """Prints the shares as a table."""
    print(f"{'share of an iteration':44}" + "".join(f"{name:>16}" for name in phases))
    for part, label in PARTS.items():
        print(f"{label:44}" + "".join(f"{phase['shares'][part]:16.1%}" for phase in phases.values()))
    cells = [f"{1e3 * phase['seconds_of_an_iteration']:.1f} ms" for phase in phases.values()]
    print(f"{'one iteration':44}" + "".join(f"{cell:>16}" for cell in cells))


def main(fast: bool = False) -> None:
    """Times rollouts and training iterations, and prints and stores both."""
    with threads(1):
        trainer = make_trainer(fast)
        untrained = time_rollouts(trainer, 3 if fast else 20)
        # Subgraphs come again and again, and their rewards are cached: the first iterations are not like later ones.
        phases = {
            "first 5": share_time(trainer, 5),
            "next 10" if fast else "next 50": share_time(trainer, 10 if fast else 50),
        }
        trained = time_rollouts(trainer, 3 if fast else 20)
        result = {
            "clock": "processor time of the one thread; best of the rounds; ratios are medians over the rounds",
            "dataset": "tree-cycles, generated",
            "instances": INSTANCES,
            "rollouts": ROLLOUTS,
            "max_nodes": trainer.settings.max_nodes,
            "nodes_of_an_instance": float(trainer.instances.node_counts.float().mean()),
            "seed": SEED,
            "before_training": untrained,
            "after_training": trained,
            "training": phases,
            **environment(),
        }
    write_json(results_folder("rollouts", fast) / "rollouts.json", result)
    for when, rate in (("before", untrained), ("after", trained)):
        print(
            f"{when} training: {rate['rollouts_per_second']['batched']:.0f} rollouts a second of "
            f"{INSTANCES} x {ROLLOUTS} ({rate['mean_size']:.1f} nodes each), "
            f"{rate['times_faster']:.0f}x as many as one at a time"
        )
    print_shares(phases)
