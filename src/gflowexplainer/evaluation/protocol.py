"""The protocol: explainers x datasets x seeds, each cell stored as it ends, no failure ending the rest."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from gflowexplainer.baselines.interface import Explainer, Subject, motif_size
from gflowexplainer.baselines.registry import create
from gflowexplainer.errors import CheckpointError, ConfigError, GFlowExplainerError
from gflowexplainer.evaluation.ground_truth import GroundTruth
from gflowexplainer.evaluation.metrics import MetricSettings, measure
from gflowexplainer.evaluation.packing import pack, unpack
from gflowexplainer.evaluation.problems import Loaded, Problem, accuracy_on
from gflowexplainer.evaluation.record import FAILED, OK, Cell, Record, fingerprint, read_json, write_json
from gflowexplainer.evaluation.shape import stability
from gflowexplainer.segments import pointers
from gflowexplainer.version import __version__

Report = Callable[[str], None]


@dataclass(frozen=True)
class Contestant:
    """An explainer by name.

    Attributes:
        name: What it is called in tables.
        make: Makes a fresh one.
        settings: What decides how it works.
    """

    name: str
    make: Callable[[], Explainer]
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str, **settings: Any) -> Contestant:
        """Takes an explainer from the registry; its name and settings are checked now."""
        create(name, **settings)
        return cls(name, lambda: create(name, **settings), settings)


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


def evaluate(
    problems: Sequence[Problem],
    contestants: Sequence[Contestant],
    *,
    seeds: Sequence[int],
    out: str | Path,
    settings: ProtocolSettings | None = None,
    report: Report | None = None,
) -> Record:
    """Runs every explainer on every problem with every seed.

    A cell that lies finished in ``out`` with the same settings is not computed again; one that failed is
    tried again. An explainer that calls itself deterministic is run with the first seed only.

    Args:
        problems: Datasets with GNNs.
        contestants: Explainers.
        seeds: Seeds of the explainers.
        out: Folder; every finished cell is stored in its subfolder ``cells``.
        settings: What all cells have in common.
        report: Is told about each cell, one line.
    """
    if not (problems and contestants and seeds):
        raise ConfigError("There is nothing to evaluate: name at least one dataset, one explainer and one seed.")
    settings = ProtocolSettings() if settings is None else settings
    run = _Run(Path(out) / "cells", settings, report or (lambda line: None))
    run.total = len(problems) * len(contestants) * len(seeds)
    cells = [cell for problem in problems for cell in run.problem(problem, contestants, seeds)]
    return Record(cells, settings=asdict(settings), stability=_stabilities(cells))


class _Run:
    """One run of the protocol: counts cells and keeps the problem at hand in memory."""

    def __init__(self, folder: Path, settings: ProtocolSettings, report: Report) -> None:
        self.folder = folder
        self.settings = settings
        self.report = report
        self.done = 0
        self.total = 0

    def problem(self, problem: Problem, contestants: Sequence[Contestant], seeds: Sequence[int]) -> list[Cell]:
        """Runs all explainers with all seeds on one problem."""
        bench = _Bench(problem, self.settings)
        cells = []
        for contestant in contestants:
            for number, seed in enumerate(seeds):
                cell = self._stored_or_new(bench, contestant, seed)
                cells.append(cell)
                if cell.deterministic and self.settings.train_share is None:
                    self.done += len(seeds) - number - 1
                    break
        return cells

    def _stored_or_new(self, bench: _Bench, contestant: Contestant, seed: int) -> Cell:
        self.done += 1
        wanted = self._blank(bench.problem, contestant, seed)
        name = f"{wanted.dataset}.{wanted.gnn}.{wanted.explainer}.{seed}.{fingerprint(wanted.settings)}.json"
        path = self.folder / name
        cell = self._stored(path)
        if cell is not None:
            self._tell(cell, "stored")
            return cell
        began = time.perf_counter()
        try:
            cell = bench.run(contestant, wanted)
        except Exception as error:
            bench.forget_failure()
            cell = replace(wanted, status=FAILED, error=_one_line(error), traceback=traceback.format_exc())
        write_json(path, cell.to_dict(whole=True))
        self._tell(cell, f"{time.perf_counter() - began:.1f} s")
        return cell

    def _blank(self, problem: Problem, contestant: Contestant, seed: int) -> Cell:
        settings = {
            "version": __version__,
            "explainer": contestant.settings,
            "problem": problem.settings,
            "protocol": asdict(self.settings),
        }
        return Cell(contestant.name, problem.dataset, problem.gnn, seed, settings)

    def _stored(self, path: Path) -> Cell | None:
        """Reads a finished cell; ``None`` if there is none, it failed, or it cannot be read."""
        if not path.is_file():
            return None
        try:
            cell = Cell.from_dict(read_json(path))
        except (CheckpointError, TypeError, KeyError, AttributeError):
            self.report(f"'{path.name}' cannot be read and is computed again")
            return None
        return cell if cell.status == OK else None

    def _tell(self, cell: Cell, how: str) -> None:
        auc = cell.metrics.get("auc_own")
        result = cell.error if cell.status == FAILED else "" if auc is None else f"own AUC {auc:.3f}"
        head = f"[{self.done}/{self.total}] {cell.dataset}, {cell.gnn} GNN, {cell.explainer}, seed {cell.seed}"
        self.report(f"{head}: {cell.status} {result} ({how})".replace("  ", " "))


class _Bench:
    """One problem, loaded when the first explainer needs it; the subject is the same for all."""

    def __init__(self, problem: Problem, settings: ProtocolSettings) -> None:
        self.problem = problem
        self.settings = settings
        self._ready: tuple[Loaded, Subject] | None = None
        self._failure: Exception | None = None

    def ready(self) -> tuple[Loaded, Subject]:
        """Loads dataset and GNN once; what failed once fails again at once."""
        if self._failure is not None:
            raise self._failure
        if self._ready is None:
            try:
                loaded = self.problem.load()
                subject = Subject.of(loaded.model, loaded.benchmark, loaded.index, max_nodes=self.settings.max_nodes)
            except Exception as error:
                self._failure = error
                raise
            self._ready = loaded, subject
        return self._ready

    def forget_failure(self) -> None:
        """Drops the frames that a failure holds on to, and with them their tensors."""
        if self._failure is not None:
            self._failure = self._failure.with_traceback(None)

    def run(self, contestant: Contestant, wanted: Cell) -> Cell:
        """Fits, explains, measures."""
        loaded, subject = self.ready()
        fitting, explained = _split(subject, self.settings.train_share, wanted.seed)
        explainer = contestant.make()
        began = _now(subject)
        explainer.fit(fitting, wanted.seed)
        fitted = _now(subject)
        scores = explainer.explain(explained, wanted.seed)
        finished = _now(subject)
        scores.check(explained.instances, contestant.name)
        top_k = self.settings.metrics.top_k or motif_size(loaded.benchmark) or subject.max_nodes
        metrics, selected = measure(
            explained,
            scores,
            GroundTruth.of(loaded.benchmark, explained.instances),
            top_k=top_k,
            settings=self.settings.metrics,
        )
        metrics["fit_seconds"] = fitted - began
        metrics["milliseconds"] = 1000 * (finished - fitted) / len(explained)
        return replace(
            wanted,
            metrics=metrics,
            facts=self._facts(loaded, subject, top_k),
            deterministic=bool(getattr(explainer, "deterministic", False)),
            selected=pack(selected, explained.instances.node_counts),
        )

    def _facts(self, loaded: Loaded, subject: Subject, top_k: int) -> dict[str, Any]:
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
    """Gives the instances to fit on and those to explain; the same ones unless ``train_share`` is set."""
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


def _stabilities(cells: Sequence[Cell]) -> dict[tuple[str, str, str], float]:
    """Compares the explanations of different seeds where they are of the same instances."""
    groups: dict[tuple[str, str, str], list[Mapping[str, str]]] = {}
    for cell in cells:
        if cell.selected and cell.settings["protocol"]["train_share"] is None:
            groups.setdefault(cell.group, []).append(cell.selected)
    found = {}
    for group, packed in groups.items():
        masks, counts = zip(*(unpack(dict(texts)) for texts in packed), strict=True)
        found[group] = stability(pointers(counts[0]), torch.stack(masks))
    return found


def _now(subject: Subject) -> float:
    """Reads the clock after all work on the device has finished."""
    if subject.instances.device.type == "cuda":
        torch.cuda.synchronize(subject.instances.device)
    return time.perf_counter()


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, GFlowExplainerError) else f"{type(error).__name__}: {text}"
