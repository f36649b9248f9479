"""One cell of the protocol: an explainer is fitted, explains, is measured, and the result is stored."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from gflowbench.explainers.registry import create, misfit, names
from gflowbench.metrics.measurement import MetricSettings
from gflowbench.protocol.code import cell_code
from gflowbench.protocol.instance_task import InstanceTask
from gflowbench.protocol.problems import Loaded, Problem
from gflowbench.protocol.record import FAILED, Cell
from gflowexplainer import __version__
from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.storage.files import write_json
from gflowexplainer.storage.identity import settings_fingerprint

if TYPE_CHECKING:
    from gflowbench.typed.link_task import LinkTask


@dataclass(frozen=True)
class Contestant:
    """An explainer by name.

    Attributes:
        name: What it is called in tables.
        make: Makes a fresh one; further settings may be handed to it, and ``links=True`` where links are explained.
        settings: What decides how it works.
        why_no_links: Why it explains no links, where it is not registered; empty if it may explain them.
    """

    name: str
    make: Callable[..., Any]
    settings: dict[str, Any] = field(default_factory=dict)
    why_no_links: str = ""

    @classmethod
    def named(cls, name: str, **settings: Any) -> Contestant:
        """Takes an explainer from the registry; its name and settings are checked now."""
        create(name, links=name not in names(), **settings)
        return cls(name, partial(create, name, **settings), settings)

    def beginning_with(self, settings: Mapping[str, Any]) -> Contestant:
        """Returns the same explainer with ``settings`` too; what it was given already stays."""
        more = {name: value for name, value in settings.items() if name not in self.settings}
        return replace(self, make=partial(self.make, **more), settings=more | self.settings) if more else self

    def misfit(self, problem: Problem) -> str:
        """Says why it cannot explain a problem; empty if it can, or if nothing is known."""
        why = misfit(self.name, problem.architecture, own_gnn=problem.own_gnn, links=problem.links)
        return why or (self.why_no_links if problem.links else "")

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
        problem = self.problem.settings
        if self.every > 1:
            problem = {**problem, "every": problem.get("every", 1) * self.every}
        described = {
            "version": __version__,
            "code": cell_code(self.contestant.name, links=self.problem.links),
            "explainer": self.contestant.settings,
            "problem": problem,
            "protocol": asdict(settings),
        }
        return Cell(self.contestant.name, self.problem.dataset, self.problem.gnn, self.seed, described)


class Bench:
    """Computes cells into a folder, and keeps the task at hand in memory: it is the same for all explainers."""

    def __init__(self, folder: Path, settings: ProtocolSettings) -> None:
        self.folder = folder
        self.settings = settings
        self._problem: Problem | None = None
        self._task: Any = None
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
            if self._failure is not None:  # its frames hold on to tensors
                self._failure = self._failure.with_traceback(None)
            cell = failed(task.blank(self.settings), one_line(error), traceback.format_exc())
        cell = replace(cell, seconds=time.perf_counter() - began)
        write_json(self.path(task), cell.to_dict(whole=True))
        return cell

    def identity(self, task: PendingCell) -> dict[str, str]:
        """Names the GNN, every tensor of the data and the instances that a cell comes from."""
        whole = self._load(task.problem)
        if task.every not in self._named:
            self._named[task.every] = whole.every(task.every).identity()
        return self._named[task.every]

    def _load(self, problem: Problem) -> InstanceTask | LinkTask:
        """Loads dataset and GNN once; what failed once fails again at once."""
        # Not by identity alone: a problem that comes from another process is a new object every time.
        if self._problem is None or _identity(problem) != _identity(self._problem):
            self._problem, self._task, self._named, self._failure = problem, None, {}, None
        if self._failure is not None:
            raise self._failure
        if self._task is None:
            try:
                loaded = problem.load()
                bound = self.settings.max_nodes
                self._task = InstanceTask.of(loaded, bound) if isinstance(loaded, Loaded) else loaded
            except Exception as error:
                self._failure = error
                raise
        return self._task

    def _run(self, task: PendingCell) -> Cell:
        """Fits, explains, measures."""
        whole = self._load(task.problem).every(task.every)
        fitting, explained = whole.split(self.settings.train_share, task.seed)
        explainer = task.contestant.make(**{"links": True} if task.problem.links else {})
        with counted_evaluations(whole) as evaluations:
            began = _now()
            explainer.fit(fitting.subject, task.seed)
            fitted = _now()
            scores = explainer.explain(explained.subject, task.seed)
            finished = _now()
        metrics, selected = explained.measure(explainer, scores, task.seed, self.settings)
        metrics["evaluations"] = evaluations()
        metrics["fit_seconds"] = fitted - began
        metrics["milliseconds"] = 1000 * (finished - fitted) / len(explained)
        return replace(
            task.blank(self.settings),
            identity=self.identity(task),
            metrics=metrics,
            facts=whole.facts(self.settings),
            deterministic=bool(getattr(explainer, "deterministic", False)),
            selected=selected,
        )


@contextmanager
def counted_evaluations(task: InstanceTask | LinkTask) -> Iterator[Callable[[], float]]:
    """Counts how often the model is evaluated within a block, whoever evaluates it.

    One evaluation is as many nodes as an instance has on average with what surrounds it, so that a call on a part of
    an instance counts as a part, and one on a thousand instances as a thousand.

    Yields:
        A function that returns the evaluations so far, for each instance of ``task``.
    """
    rows = 0

    def count(_module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        nonlocal rows
        x = arguments[0] if arguments else named.get("x", named.get("x_dict"))
        tensors = x.values() if isinstance(x, dict) else [x]
        rows += sum(tensor.size(0) for tensor in tensors if isinstance(tensor, torch.Tensor))

    handle = task.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield lambda: rows / max(task.num_nodes, 1)
    finally:
        handle.remove()


def file_of(cell: Cell) -> str:
    """Names the file of a cell; it changes with any setting and with the code."""
    return f"{cell.dataset}.{cell.gnn}.{cell.explainer}.{cell.seed}.{settings_fingerprint(cell.settings)}.json"


def failed(blank: Cell, error: str, where: str = "") -> Cell:
    """Returns the cell that says what went wrong."""
    return replace(blank, status=FAILED, error=error, traceback=where)


def one_line(error: Exception) -> str:
    """Says what went wrong in one line; of errors of this package the message alone."""
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, GFlowExplainerError) else f"{type(error).__name__}: {text}"


def _identity(problem: Problem) -> tuple[Any, ...]:
    return problem.dataset, problem.gnn, settings_fingerprint(problem.settings)


def _now() -> float:
    """Reads the clock after all work on a GPU has finished."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()
