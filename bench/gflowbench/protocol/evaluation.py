"""The protocol: explainers x datasets x seeds, each cell stored as it ends, no failure ending the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from gflowbench.metrics.shape import stability
from gflowbench.protocol.cells import Bench, Contestant, PendingCell, ProtocolSettings, one_line
from gflowbench.protocol.packing import unpack
from gflowbench.protocol.plan import Plan, whole
from gflowbench.protocol.problems import TRAINED, Problem
from gflowbench.protocol.record import FAILED, OK, Cell, Group, Record, left_out_lines
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.ops.segments import pointers
from gflowexplainer.storage.files import read_json
from gflowexplainer.storage.identity import differences

Tell = Callable[[str], None]


def evaluate(
    problems: Sequence[Problem],
    contestants: Sequence[Contestant],
    *,
    seeds: Sequence[int],
    out: str | Path,
    settings: ProtocolSettings | None = None,
    report: Tell | None = None,
    plan: Plan = whole,
    jobs: int = 1,
) -> Record:
    """Runs every explainer on every problem with every seed, or on what a plan leaves of them.

    A cell that lies finished in ``out`` with the same settings is not computed again; one that failed is
    tried again. An explainer that calls itself deterministic is run with the first seed only; one that does not
    know the problem's architecture is left out.

    Args:
        problems: Datasets with GNNs.
        contestants: Explainers.
        seeds: Seeds of the explainers.
        out: Folder; every finished cell is stored in its subfolder ``cells``.
        settings: What all cells have in common.
        report: Is told about each cell, one line.
        plan: Says of how many instances and seeds each explainer is run; see :mod:`gflowbench.protocol.plan`.
        jobs: Processes that compute cells side by side, each with one thread. They begin anew, so with more than one
            a script that calls this needs ``if __name__ == "__main__":``.
    """
    if jobs < 1:
        raise ConfigError(f"'jobs' must be at least 1 (got {jobs}).")
    settings = ProtocolSettings() if settings is None else settings
    layout = _Layout()
    for problem in problems:
        for contestant in contestants:
            layout.add(problem, contestant, seeds, plan, settings)
    report = report or (lambda line: None)
    if not layout.tasks:
        why = "; ".join(dict.fromkeys(f"{group[2]}: {why}" for group, why in layout.left_out.items()))
        why = why or "name at least one dataset, one explainer and one seed"
        raise ConfigError(f"There is nothing to evaluate: {why}.")
    for line in left_out_lines(layout.left_out):
        report(line)
    cells = _Run(Bench(Path(out) / "cells", settings), layout.tasks, report).cells(jobs)
    return Record(
        cells,
        settings=asdict(settings),
        stability=_stabilities(cells),
        thinned=layout.thinned,
        left_out=layout.left_out,
    )


@dataclass
class _Layout:
    """The cells of an evaluation, which of them are thinned and how, and what is left out and why."""

    tasks: list[PendingCell] = field(default_factory=list)
    thinned: dict[Group, str] = field(default_factory=dict)
    left_out: dict[Group, str] = field(default_factory=dict)

    def add(
        self,
        problem: Problem,
        contestant: Contestant,
        seeds: Sequence[int],
        plan: Plan,
        settings: ProtocolSettings,
    ) -> None:
        """Adds the cells of one explainer on one problem."""
        group = (problem.gnn, problem.dataset, contestant.name)
        part = plan(contestant.name, problem.dataset)
        why = part.left_out or contestant.misfit(problem)
        if why:
            self.left_out[group] = why
            return
        contestant = contestant.beginning_with(part.settings)
        count = len(seeds) if part.seeds is None else min(part.seeds, len(seeds))
        fewer_seeds = count < len(seeds)
        if contestant.deterministic and settings.train_share is None and not problem.links:  # ties are drawn there
            count, fewer_seeds = min(count, 1), False
        # A setting that the user gave stays; then the plan's own is not what was run.
        used = {name: contestant.settings[name] for name in part.settings}
        words = part.words(count if fewer_seeds else None, used)
        if words:
            self.thinned[group] = words
        self.tasks += [PendingCell(problem, contestant, seed, part.every) for seed in list(seeds)[:count]]


class _Run:
    """One run of the protocol: finds what is stored, has the rest computed, and counts."""

    def __init__(self, bench: Bench, tasks: Sequence[PendingCell], report: Tell) -> None:
        self.bench = bench
        self.tasks = tasks
        self.report = report
        self.done = 0

    def cells(self, jobs: int) -> list[Cell]:
        """Returns the cell of every task, in their order."""
        found: dict[int, Cell] = {}
        missing = []
        for number, task in enumerate(self.tasks):
            cell = self._stored(task)
            if cell is None:
                missing.append(number)
            else:
                found[number] = cell
                self._tell(cell, "stored")
        for number, cell in self._computed(missing, min(jobs, len(missing))):
            found[number] = cell
            self._tell(cell, f"{cell.seconds:.1f} s")
        return [found[number] for number in range(len(self.tasks))]

    def _computed(self, missing: Sequence[int], jobs: int) -> Iterator[tuple[int, Cell]]:
        """Computes the tasks ``missing``; gives their numbers and cells as they end."""
        if jobs <= 1:
            for number in missing:
                yield number, self.bench.compute(self.tasks[number])
            return
        from gflowbench.protocol.workers import compute_side_by_side

        tasks = [self.tasks[number] for number in missing]
        _train_once([task.problem for task in tasks])
        for place, cell in compute_side_by_side(self.bench, tasks, jobs):
            yield missing[place], cell

    def _stored(self, task: PendingCell) -> Cell | None:
        """Reads a finished cell; ``None`` if there is none, it failed, cannot be read, or is of another GNN or data."""
        path = self.bench.path(task)
        if not path.is_file():
            return None
        try:
            cell = Cell.from_dict(read_json(path))
        except (CheckpointError, TypeError, KeyError, AttributeError):
            self.report(f"'{path.name}' cannot be read and is computed again")
            return None
        if cell.status != OK:
            return None
        try:
            here = self.bench.identity(task)
        except Exception as error:  # what is stored stays, as long as nothing says that it is of something else
            self.report(f"'{path.name}' is taken as it is: its data could not be loaded ({one_line(error)})")
            return cell
        different = differences(cell.identity, here)
        if different:
            self.report(f"'{path.name}' is of something else and is computed again: {'; '.join(different[:3])}")
        return None if different else cell

    def _tell(self, cell: Cell, how: str) -> None:
        self.done += 1
        auc = cell.metrics.get("auc_own", math.nan)
        result = cell.error if cell.status == FAILED else "" if math.isnan(auc) else f"own AUC {auc:.3f}"
        head = f"[{self.done}/{len(self.tasks)}] {cell.dataset}, {cell.gnn} GNN, {cell.explainer}, seed {cell.seed}"
        self.report(f"{head}: {cell.status} {result} ({how})".replace("  ", " "))


def _train_once(problems: Sequence[Problem]) -> None:
    """Trains the GNNs that are trained here before several processes need them; they find the files."""
    for problem in {(p.dataset, p.gnn): p for p in problems if p.gnn == TRAINED}.values():
        try:
            problem.load()
        except Exception:  # it fails again in its cells, which say why
            continue


def _stabilities(cells: Sequence[Cell]) -> dict[Group, float]:
    """Compares the explanations of different seeds where they are of the same instances."""
    groups: dict[Group, list[Mapping[str, str]]] = {}
    for cell in cells:
        if cell.selected and cell.settings["protocol"]["train_share"] is None:
            groups.setdefault(cell.group, []).append(cell.selected)
    found = {}
    for group, packed in groups.items():
        masks, counts = zip(*(unpack(dict(texts)) for texts in packed), strict=True)
        found[group] = stability(pointers(counts[0]), torch.stack(masks))
    return found
