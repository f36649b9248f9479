"""The record of an evaluation, as JSON: means over seeds with what is needed to repeat them, and every cell."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gflowexplainer.report.provenance import command_line, environment
from gflowexplainer.storage.files import write_json

FORMAT = "gflowexplainer-evaluation-1"
SUMMARY, VALUES = "summary.json", "values.json"
OK, FAILED = "ok", "failed"
Group = tuple[str, str, str]
"""GNN, dataset and explainer: what the seeds are averaged over."""


@dataclass(frozen=True)
class Cell:
    """The result of one explainer on one dataset with one GNN and one seed.

    Attributes:
        explainer, dataset, gnn, seed: Which one.
        settings: Everything else that decides the result.
        identity: The GNN and the data that it is of, each tensor by a short name of its content.
        status: ``"ok"`` or ``"failed"``.
        metrics: Values by name, times included; empty if it failed.
        error: What went wrong, one line; empty if nothing did.
        facts: Benchmark and GNN: provenance, number of instances, accuracies.
        deterministic: Whether every other seed would give the same.
        selected: The hard explanations, packed, for stability over seeds; only in the cell's own file.
        traceback: Where it went wrong; only in the cell's own file.
        seconds: How long all of it took, measuring included.
    """

    explainer: str
    dataset: str
    gnn: str
    seed: int
    settings: dict[str, Any]
    status: str = OK
    metrics: dict[str, float] = field(default_factory=dict)
    error: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    selected: dict[str, str] = field(default_factory=dict)
    traceback: str = ""
    seconds: float = 0.0
    identity: dict[str, str] = field(default_factory=dict)

    def to_dict(self, *, whole: bool = False) -> dict[str, Any]:
        """Makes what JSON can hold; ``whole`` keeps the explanations and the surroundings."""
        parts = dict(vars(self))
        if not whole:
            del parts["selected"], parts["facts"], parts["traceback"], parts["identity"]
            return parts
        return {"format": FORMAT, **environment(), **parts}

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Cell:
        """Reads what :meth:`to_dict` made."""
        known = {name: parts[name] for name in cls.__dataclass_fields__ if name in parts}
        known["metrics"] = {k: math.nan if v is None else v for k, v in known.get("metrics", {}).items()}
        return cls(**known)

    @property
    def group(self) -> Group:
        """GNN, dataset and explainer: what the seeds are averaged over."""
        return self.gnn, self.dataset, self.explainer


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation over the seeds that did not fail.

    Attributes:
        explainer, dataset, gnn: Which one.
        seeds: The seeds that are in the mean.
        failed: The seeds that failed.
        mean, deviation: Of each metric; the deviation of a single seed is ``nan``.
        instances: Number of instances; 0 if nothing is known of it.
        thinned: How it was thinned, in words; empty if it was not.
    """

    explainer: str
    dataset: str
    gnn: str
    seeds: list[int]
    failed: list[int]
    mean: dict[str, float]
    deviation: dict[str, float]
    instances: int = 0
    thinned: str = ""


@dataclass(frozen=True)
class Record:
    """The results of one run of the protocol.

    Attributes:
        cells: One for each explainer, dataset, GNN and seed.
        settings: Settings that all have in common.
        stability: Agreement of explanations over seeds, by :attr:`Cell.group`.
        thinned: What was run on fewer instances or seeds or with other settings than the rest, and how, in words.
        left_out: What was not run at all, and why.
        command: The command line that made it.
    """

    cells: list[Cell]
    settings: dict[str, Any] = field(default_factory=dict)
    stability: dict[Group, float] = field(default_factory=dict)
    thinned: dict[Group, str] = field(default_factory=dict)
    left_out: dict[Group, str] = field(default_factory=dict)
    command: str = field(default_factory=lambda: command_line())

    def summaries(self) -> list[Summary]:
        """Averages over seeds, in the order in which the cells came."""
        groups: dict[Group, list[Cell]] = {}
        for cell in self.cells:
            groups.setdefault(cell.group, []).append(cell)
        return [self._summary(group, cells) for group, cells in groups.items()]

    def _summary(self, group: Group, cells: Sequence[Cell]) -> Summary:
        good = [cell for cell in cells if cell.status == OK]
        names = list(dict.fromkeys(name for cell in good for name in cell.metrics))
        columns = {name: [cell.metrics.get(name, math.nan) for cell in good] for name in names}
        mean = {name: _skip_nan(np.mean, values) for name, values in columns.items()}
        deviation = {
            name: _skip_nan(lambda known: np.std(known, ddof=1), values, least=2) for name, values in columns.items()
        }
        if good:
            mean["stability"] = self.stability.get(group, math.nan)
            deviation["stability"] = math.nan
        gnn, dataset, explainer = group
        return Summary(
            explainer=explainer,
            dataset=dataset,
            gnn=gnn,
            seeds=[cell.seed for cell in good],
            failed=[cell.seed for cell in cells if cell.status == FAILED],
            mean=mean,
            deviation=deviation,
            instances=max((cell.facts.get("instances", 0) for cell in good), default=0),
            thinned=self.thinned.get(group, ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Makes what JSON can hold."""
        return self.summary() | self.values()

    def values(self) -> dict[str, Any]:
        """Makes what JSON can hold of every cell."""
        return {"cells": [cell.to_dict() for cell in self.cells]}

    def summary(self) -> dict[str, Any]:
        """Makes what JSON can hold of everything but the single cells; small enough to be kept for good."""
        # A dataset is described by the cell that saw most of it.
        whole = sorted((cell for cell in self.cells if cell.facts), key=lambda cell: cell.facts.get("instances", 0))
        subjects = {f"{cell.dataset}, {cell.gnn} GNN": cell.facts for cell in whole}
        out = self.left_out.items()
        return {
            "format": FORMAT,
            "command": self.command,
            **environment(),
            "code_of_cells": {cell.explainer: cell.settings.get("code") for cell in self.cells},
            "settings": self.settings,
            "subjects": subjects,
            "summaries": [vars(summary) for summary in self.summaries()],
            "left_out": [dict(zip(("gnn", "dataset", "explainer"), g, strict=True)) | {"why": w} for g, w in out],
        }

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes the record to a folder: ``summary.json``, and the cells to ``values.json``."""
        write_json(Path(folder) / VALUES, self.values())
        write_json(Path(folder) / SUMMARY, self.summary())


def left_out_lines(left_out: Mapping[Group, str]) -> list[str]:
    """Says what is left out and why, one line a reason and the datasets that it holds for."""
    datasets: dict[tuple[str, str], dict[str, None]] = {}
    for (_, dataset, explainer), why in left_out.items():
        datasets.setdefault((explainer, why), {})[dataset] = None
    explainers: dict[tuple[str, str], list[str]] = {}
    for (explainer, why), where in datasets.items():
        explainers.setdefault((", ".join(where), why), []).append(explainer)
    return [f"left out: {', '.join(who)} on {where}: {why}" for (where, why), who in explainers.items()]


def _skip_nan(reduce: Callable[[list[float]], Any], values: Sequence[float], least: int = 1) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(reduce(known)) if len(known) >= least else math.nan
