"""Times of fitting and explaining, all explainers of one dataset one after the other in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowbench.explainers.rg_explainer import EPOCHS
from gflowbench.paper.experiment import Scope
from gflowbench.paper.steps import Done, Measurement, Tell
from gflowbench.paper.systems import DEFAULT, PAPER, here
from gflowbench.protocol import Problem
from gflowbench.protocol.problems import problem

SHARED = "timings"
"""Folder beside the two experiments' folders in which both find the same values."""
CPU, GPU = "cpu", "cuda"
RG = "rg-explainer"
EXPLAINERS = (
    "gnnexplainer",
    "pgexplainer",
    RG,
    PAPER,
    DEFAULT,
    "degree-decomposition",
    "saliency",
    "integrated-gradients",
)
FULL = {"ba-shapes": 1, "ba-community": 1, "tree-cycles": 1, "tree-grid": 3, "ba-2motifs": 2, "mutagenicity": 10}
FAST = {"ba-shapes": 12, "ba-community": 20, "tree-cycles": 6, "tree-grid": 30, "ba-2motifs": 20, "mutagenicity": 100}
"""Every n-th instance is fitted on and explained."""


@dataclass(frozen=True)
class Lengths:
    """How much is timed.

    Attributes:
        alone: Instances that are explained one at a time.
        epochs: Epochs between two fits whose difference is timed; of RG-Explainer, whose pre-training is long, all that
            it has.
        repeats: How often explaining is timed; the least counts, which other work on the machine disturbed least.
        threads: Threads on a CPU.
        short: Whether everything that is learned is learned for a moment only.
    """

    alone: int = 10
    epochs: int = 5
    repeats: int = 2
    threads: int = 2
    short: bool = False


def steps(scope: Scope) -> list[Measurement]:
    """One step for each dataset on the CPU, and one on the GPU where there is one, or where it was computed."""
    lengths = scope.pick(Lengths(), Lengths(alone=2, epochs=2, repeats=1, threads=1, short=True))
    every = scope.pick(FULL, FAST)
    found = []
    for device in (CPU, GPU):
        for dataset in here(scope):
            one = problem(dataset, scope.gnn, every=every[dataset], device=device, weights=scope.gnns)
            settings = {**vars(lengths), "gnn": one.gnn, "problem": one.settings, "device": device}
            kind = Measurement if device == CPU else _OnGpu
            name = name_of(dataset, device)
            found.append(kind(name, settings, partial(measure, one, lengths, device), beside=SHARED))
    return found


def name_of(dataset: str, device: str) -> str:
    """Names a step."""
    return f"{dataset} on {device}"


@dataclass(frozen=True)
class _OnGpu(Measurement):
    """A value that only a machine with a GPU can compute; ``None`` on others, and then it is not stored."""

    def finish(self, folder: Path, tell: Tell) -> Done:
        if not self.path(folder).is_file() and not torch.cuda.is_available():
            return Done(None, "no GPU here", [])
        return super().finish(folder, tell)


def measure(problem: Problem, lengths: Lengths, device: str) -> dict[str, Any]:
    """Times every explainer on the instances of ``problem``.

    Returns:
        For each explainer ``"preparation"``: seconds of fitting before the first epoch; ``"epoch"``: seconds of one
        epoch, ``None`` where there are none; ``"span"``: epochs from whose time it is known; ``"fit"``: seconds of the
        whole fit with the explainer's own number of epochs, computed from these; ``"alone"`` and ``"together"``:
        milliseconds an instance, explained one at a time and all at once; ``"single"``: one at a time, by one sampled
        subgraph, ``None`` where no network samples them one by one. And ``"instances"``, ``"threads"``, ``"device"``.
    """
    with _threads(lengths.threads):
        loaded = problem.load()
        subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
        clock = _Clock(device, lengths.repeats)
        found = {name: _timed(name, subject, lengths, clock) for name in EXPLAINERS}
        threads = torch.get_num_threads()
    where = torch.cuda.get_device_name(0) if device == GPU else "CPU"
    return {"explainers": found, "instances": len(subject), "threads": threads, "device": where}


def _timed(name: str, subject: Subject, lengths: Lengths, clock: _Clock) -> dict[str, Any]:
    learning = _learning(name, subject, lengths)
    if learning is None:
        few: dict[str, Any] = {"epochs": 20} if lengths.short and "explainer" in name else {}
        explainer = create(name, **few)
        explainer.fit(subject, 0)  # once without the clock: first calls of a kernel are slow
        preparation = clock.once(lambda: explainer.fit(subject, 0))
        fitting: dict[str, Any] = {"preparation": preparation, "epoch": None, "fit": preparation}
    else:
        brief, explainer = (create(name, **learning.settings, epochs=e) for e in (learning.first, learning.last))
        short = clock.once(lambda: brief.fit(subject, 0))
        long = clock.once(lambda: explainer.fit(subject, 0))
        span = learning.last - learning.first
        epoch = max(long - short, 0.0) / span
        preparation = max(short - learning.first * epoch, 0.0)
        fitting = {
            "preparation": preparation,
            "epoch": epoch,
            "fit": preparation + learning.usual * epoch,
            "span": span,
        }
    explain = explainer.answer if isinstance(explainer, GFlow) else partial(explainer.explain, seed=0)
    some = torch.linspace(0, len(subject) - 1, min(lengths.alone, len(subject))).round().long()
    ones = [subject.select(one.to(subject.instances.device)) for one in some.reshape(-1, 1)]
    explain(ones[0])
    alone = [clock.seconds(partial(explain, one)) for one in ones]
    together = clock.seconds(lambda: explain(subject)) / len(subject)
    found = fitting | {"alone": 1000 * fmean(alone), "together": 1000 * together, "single": None}
    if isinstance(explainer, GFlow) and not explainer.settings.is_sampled_directly:
        explainer.explainer.num_samples = 1
        found["single"] = 1000 * fmean(clock.seconds(partial(explain, one)) for one in ones)
    return found


@dataclass(frozen=True)
class _Learning:
    """Two lengths of a training whose difference gives the time of an epoch, and the usual one.

    Attributes:
        first, last: Epochs of the short and the long fit.
        usual: Epochs of a whole fit.
        settings: Other settings of both.
    """

    first: int
    last: int
    usual: float
    settings: dict[str, Any] = field(default_factory=dict)


def _learning(name: str, subject: Subject, lengths: Lengths) -> _Learning | None:
    if name == RG:
        brief = {"list_epochs": 2, "set_epochs": 2, "locator_updates": 10} if lengths.short else {}
        usual = EPOCHS.get(subject.name, 30)
        return _Learning(0, lengths.epochs if lengths.short else usual, usual, brief)
    if name != PAPER:
        return None
    settings = create(name).settings
    batches = -(-len(subject) // settings.batch_size)
    usual = settings.epochs if not settings.max_updates else min(settings.epochs, settings.max_updates / batches)
    small = {"max_nodes": 8} if lengths.short else {}
    return _Learning(1, 1 + lengths.epochs, usual, {"max_updates": 0, **small})


class _Clock:
    """Reads the time when the device has finished."""

    def __init__(self, device: str, repeats: int) -> None:
        self.device, self.repeats = device, repeats

    def seconds(self, work: Callable[[], Any]) -> float:
        """Times a call several times and gives the least."""
        return min(self.once(work) for _ in range(self.repeats))

    def once(self, work: Callable[[], Any]) -> float:
        """Times a call."""
        began = self._now()
        work()
        return self._now() - began

    def _now(self) -> float:
        if self.device == GPU:
            torch.cuda.synchronize()
        return time.perf_counter()


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Computes with so many threads, and then with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
