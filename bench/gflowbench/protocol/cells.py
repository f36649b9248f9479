"""One cell of the protocol: an explainer is fitted, explains, is measured, and the result is stored."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gflowbench.explainers.interface import Subject, motif_size
from gflowbench.explainers.registry import create
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import MetricSettings, measure
from gflowbench.protocol.code import cell_code, code_of
from gflowbench.protocol.packing import pack
from gflowbench.protocol.problems import Loaded, Problem, accuracy_on
from gflowbench.protocol.record import FAILED, Cell
from gflowexplainer import __version__
from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.storage.files import write_json
from gflowexplainer.storage.identity import identity_of, settings_fingerprint


@dataclass(frozen=True)
class Contestant:
    """An explainer by name.

    Attributes:
        name: What it is called in tables.
        make: Makes a fresh one; further settings may be handed to it.
        settings: What decides how it works.
        module: Module that its cells come from; that of the registered explainer of this name if not given.
    """

    name: str
    make: Callable[..., Any]
    settings: dict[str, Any] = field(default_factory=dict)
    module: str | None = None

    @classmethod
    def named(cls, name: str, **settings: Any) -> Contestant:
        """Takes an explainer from the registry; its name and settings are checked now."""
        create(name, **settings)
        return cls(name, partial(create, name, **settings), settings)

    def beginning_with(self, settings: Mapping[str, Any]) -> Contestant:
        """Returns the same explainer with ``settings`` too; what it was given already stays."""
        more = {name: value for name, value in settings.items() if name not in self.settings}
        return replace(self, make=partial(self.make, **more), settings=more | self.settings) if more else self

    @property
    def deterministic(self) -> bool:
        """Whether every seed gives the same; ``False`` where that cannot be known."""
        try:
            return bool(getattr(self.make(), "deterministic", False))
        except Exception:  # its cell will say what is wrong
            return False


@dataclass(frozen=True)
class ProtocolSettings:
    """What all cells of an evaluation have in common.

    Attributes:
        metrics: Settings of the metrics.
        max_nodes: Size bound of explanations; motif size and one more if not given.
        train_share: Share of the instances that an explainer is fitted on, drawn anew for each seed, while
            the others are explained (inductive). If ``None`` it is fitted on the instances it explains.
    """

    metrics: MetricSettings = field(default_factory=MetricSettings)
    max_nodes: int | None = None
    train_share: float | None = None

    def __post_init__(self) -> None:
        if self.train_share is not None and not 0 < self.train_share < 1:
            raise ConfigError(f"'train_share' must lie between 0 and 1 (got {self.train_share}).")
        if self.max_nodes is not None and self.max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {self.max_nodes}).")


@dataclass(frozen=True)
class PendingCell:
    """A cell to compute.

    Attributes:
        problem: Dataset and GNN.
        contestant: The explainer.
        seed: Its seed.
        every: Of the instances of the problem, every n-th is taken.
    """

    problem: Problem
    contestant: Contestant
    seed: int
    every: int = 1

    def blank(self, settings: ProtocolSettings) -> Cell:
        """Returns the cell without its result; it is the same whether problem or plan leaves instances out."""
        problem, module = self.problem.settings, self.contestant.module
        if self.every > 1:
            problem = {**problem, "every": problem.get("every", 1) * self.every}
        described = {
            "version": __version__,
            "code": cell_code(self.contestant.name) if module is None else code_of(module),
            "explainer": self.contestant.settings,
            "problem": problem,
            "protocol": asdict(settings),
        }
        return Cell(self.contestant.name, self.problem.dataset, self.problem.gnn, self.seed, described)


class Bench:
    """Computes cells into a folder, and keeps the problem at hand in memory: it is the same for all explainers."""

    def __init__(self, folder: Path, settings: ProtocolSettings) -> None:
        self.folder = folder
        self.settings = settings
        self._problem: Problem | None = None
        self._ready: Any = None
        self._named: dict[int, dict[str, str]] = {}
        self._failure: Exception | None = None

    def path(self, task: PendingCell) -> Path:
        """Returns the file of a cell; its name changes with any setting and with the code."""
        return self.folder / file_of(task.blank(self.settings))

    def compute(self, task: PendingCell) -> Cell:
        """Computes and stores a cell; what goes wrong in it is its result."""
        began = time.perf_counter()
        try:
            cell = self._run(task)
        except Exception as error:
            self._forget_failure()
            cell = failed(task.blank(self.settings), one_line(error), traceback.format_exc())
        cell = replace(cell, seconds=time.perf_counter() - began)
        write_json(self.path(task), cell.to_dict(whole=True))
        return cell

    def _load(self, problem: Problem) -> Any:
        """Loads dataset and GNN once; what failed once fails again at once."""
        # Not by identity alone: a problem that comes from another process is a new object every time.
        if self._problem is None or _identity(problem) != _identity(self._problem):
            self._problem, self._ready, self._named, self._failure = problem, None, {}, None
        if self._failure is not None:
            raise self._failure
        if self._ready is None:
            try:
                self._ready = self._prepare(problem)
            except Exception as error:
                self._failure = error
                raise
        return self._ready

    def _prepare(self, problem: Problem) -> tuple[Loaded, Subject]:
        """Loads dataset and GNN, and cuts the instances out."""
        loaded = problem.load()
        subject = Subject.of(
            loaded.model,
            loaded.benchmark,
            loaded.index,
            max_nodes=self.settings.max_nodes,
            mode=loaded.mode,
            num_hops=loaded.num_hops,
        )
        return loaded, subject

    def identity(self, task: PendingCell) -> dict[str, str]:
        """Names the GNN, every tensor of the data and the instances that the cell of a task comes from."""
        loaded, _ = self._load(task.problem)
        if task.every not in self._named:
            graphs = [graph.to_dict() for graph in loaded.benchmark.graphs]
            self._named[task.every] = identity_of(loaded.model, graphs, index=loaded.index[:: task.every])
        return self._named[task.every]

    def _forget_failure(self) -> None:
        """Drops the frames that a failure holds on to, and with them their tensors."""
        if self._failure is not None:
            self._failure = self._failure.with_traceback(None)

    def _run(self, task: PendingCell) -> Cell:
        """Fits, explains, measures."""
        loaded, subject = self._load(task.problem)
        loaded, subject = thinned(loaded, subject, task.every)
        wanted = task.blank(self.settings)
        fitting, explained = _split(subject, self.settings.train_share, task.seed)
        explainer = task.contestant.make()
        with counted_evaluations(subject) as evaluations:
            began = _now(subject)
            explainer.fit(fitting, task.seed)
            fitted = _now(subject)
            scores = explainer.explain(explained, task.seed)
            finished = _now(subject)
        scores.check(explained.instances, wanted.explainer)
        top_k = self.settings.metrics.top_k or motif_size(loaded.benchmark) or subject.max_nodes
        metrics, selected = measure(
            explained,
            scores,
            GroundTruth.of(loaded.benchmark, explained) if loaded.truth is None else loaded.truth(explained),
            top_k=top_k,
            settings=self.settings.metrics,
        )
        if loaded.score is not None:
            metrics |= loaded.score(explainer, explained, scores)
        metrics["evaluations"] = evaluations()
        metrics["fit_seconds"] = fitted - began
        metrics["milliseconds"] = 1000 * (finished - fitted) / len(explained)
        return replace(
            wanted,
            identity=self.identity(task),
            metrics=metrics,
            facts=_facts(loaded, subject, top_k),
            deterministic=bool(getattr(explainer, "deterministic", False)),
            selected=pack(selected, explained.instances.node_counts),
        )


@contextmanager
def counted_evaluations(subject: Subject) -> Iterator[Callable[[], float]]:
    """Counts how often the model is evaluated within a block, whoever evaluates it.

    One evaluation is as many nodes as an instance has on average with what surrounds it, so that a call on a part of
    an instance counts as a part, and one on a thousand instances as a thousand.

    Yields:
        A function that returns the evaluations so far, for each instance of ``subject``.
    """
    graphs = subject.instances.surroundings or subject.instances
    rows = 0

    def count(_module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        nonlocal rows
        x = arguments[0] if arguments else named.get("x")
        rows += x.size(0) if isinstance(x, torch.Tensor) else 0

    handle = subject.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield lambda: rows / max(graphs.num_nodes, 1)
    finally:
        handle.remove()


def file_of(cell: Cell) -> str:
    """Names the file of a cell; it changes with any setting and with the code."""
    return f"{cell.dataset}.{cell.gnn}.{cell.explainer}.{cell.seed}.{settings_fingerprint(cell.settings)}.json"


def thinned(loaded: Loaded, subject: Subject, every: int) -> tuple[Loaded, Subject]:
    """Takes each ``every``-th instance."""
    if every == 1:
        return loaded, subject
    kept = torch.arange(0, len(subject), every, device=subject.instances.device)
    return replace(loaded, index=loaded.index[::every]), subject.select(kept)


def failed(blank: Cell, error: str, where: str = "") -> Cell:
    """Returns the cell that says what went wrong."""
    return replace(blank, status=FAILED, error=error, traceback=where)


def one_line(error: Exception) -> str:
    """Says what went wrong in one line; of errors of this package the message alone."""
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, GFlowExplainerError) else f"{type(error).__name__}: {text}"


def _identity(problem: Problem) -> tuple[Any, ...]:
    return problem.dataset, problem.gnn, settings_fingerprint(problem.settings)


def _facts(loaded: Loaded, subject: Subject, top_k: int) -> dict[str, Any]:
    benchmark, label = loaded.benchmark, subject.target.label
    return {
        "source": benchmark.source,
        "provenance": benchmark.provenance,
        "instances": len(subject),
        "max_nodes": subject.max_nodes,
        "top_k": top_k,
        "accuracy_on_instances": None if label is None else accuracy_on(loaded, label),
        "device": str(subject.instances.device),
        **loaded.facts,
    }


def _split(subject: Subject, train_share: float | None, seed: int) -> tuple[Subject, Subject]:
    """Returns the instances to fit on and those to explain; the same ones unless ``train_share`` is set."""
    if train_share is None:
        return subject, subject
    if len(subject) < 2:
        raise ConfigError("An inductive evaluation needs at least 2 instances. Leave 'train_share' out.")
    order = torch.randperm(len(subject), generator=torch.Generator().manual_seed(seed))
    count = min(max(round(train_share * len(subject)), 1), len(subject) - 1)
    device = subject.instances.device
    return (
        subject.select(order[:count].sort().values.to(device)),
        subject.select(order[count:].sort().values.to(device)),
    )


def _now(subject: Subject) -> float:
    """Reads the clock after all work on the device has finished."""
    if subject.instances.device.type == "cuda":
        torch.cuda.synchronize(subject.instances.device)
    return time.perf_counter()
