"""The steps of an experiment: values that are computed once, stored as they end, and found again."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gflowbench.protocol import Contestant, Problem, ProtocolSettings, Record, evaluate
from gflowbench.protocol.cells import file_of
from gflowbench.protocol.code import step_code
from gflowbench.protocol.plan import Plan, whole
from gflowbench.protocol.presentation import failures
from gflowbench.protocol.record import Cell, Group
from gflowexplainer import __version__
from gflowexplainer.errors import CheckpointError
from gflowexplainer.report.provenance import environment
from gflowexplainer.storage.files import dumps, read_json, slug, write_json
from gflowexplainer.storage.identity import settings_fingerprint

FORMAT = "gflowexplainer-cell-1"
CELLS = "cells"
_BY_GROUP = ("stability", "thinned", "left_out")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Done:
    """A finished step.

    Attributes:
        value: What came out, as JSON can hold it.
        how: ``"stored"``, or how long it took.
        origins: When, with which versions and code and on which device it was computed.
        failures: What of it failed, one line each; the value holds the rest.
        seeds: Seeds it was computed with.
    """

    value: Any
    how: str
    origins: Sequence[Mapping[str, Any]]
    failures: Sequence[str] = ()
    seeds: Sequence[int] = ()


class Step(Protocol):
    """Something with a name that can be computed, or is found in a folder."""

    @property
    def name(self) -> str:
        """What it is called; no other step of the experiment has this name."""
        ...

    def finish(self, folder: Path, tell: Tell) -> Done:
        """Finds the value in ``folder`` or computes it and stores it there."""
        ...


@dataclass(frozen=True)
class Measurement:
    """One value, in one file.

    Attributes:
        name: What it is called.
        settings: Everything that decides the value, as JSON can hold it; with other settings, or another code, it is
            computed again.
        compute: Computes it; must not need matplotlib.
        beside: Name of a folder beside the experiment's, in which several experiments find the value; its own if empty.
    """

    name: str
    settings: Mapping[str, Any]
    compute: Callable[[], Any]
    beside: str = ""

    def path(self, folder: Path) -> Path:
        """Names the file of the value."""
        code = step_code(self.compute)
        identity = {"version": __version__, "code": code, "name": self.name, "settings": self.settings}
        return home(folder, self.beside) / CELLS / f"{slug(self.name)[:80]}.{settings_fingerprint(identity)}.json"

    def finish(self, folder: Path, tell: Tell) -> Done:
        """Finds the value in ``folder`` or computes it and stores it there."""
        path = self.path(folder)
        stored = self._stored(path, tell)
        if stored is None:
            began = time.perf_counter()
            value = self.compute()
            seconds = time.perf_counter() - began
            known = {"format": FORMAT, **environment(), "seconds": seconds, "name": self.name}
            write_json(path, {**known, "settings": self.settings, "value": value})
            # Read again, so that a fresh value and a stored one are the same: no tuples, no tensors, no nan.
            stored, how = read_json(path), f"{seconds:.1f} s"
        else:
            how = "stored"
        seeds = [self.settings["seed"]] if "seed" in self.settings else []
        return Done(stored["value"], how, [_origin(stored)], seeds=seeds)

    def _stored(self, path: Path, tell: Tell) -> dict[str, Any] | None:
        if not path.is_file():
            return None
        try:
            found = read_json(path)
            return found if found["format"] == FORMAT and "value" in found else None
        except (CheckpointError, TypeError, KeyError):
            tell(f"'{path.name}' cannot be read and is computed again")
            return None


@dataclass(frozen=True)
class Contest:
    """Explainers on one dataset with several seeds, by the protocol, which stores every cell itself.

    Attributes:
        name: What it is called.
        problem: Dataset and GNN.
        contestants: Explainers.
        seeds: Seeds of each.
        settings: What all cells have in common.
        thinning: Says of how many instances and seeds each explainer is run.
        beside: Name of a folder beside the experiment's, in which several experiments find the cells; its own if empty.
    """

    name: str
    problem: Problem
    contestants: Sequence[Contestant]
    seeds: Sequence[int]
    settings: ProtocolSettings = field(default_factory=ProtocolSettings)
    thinning: Plan = whole
    beside: str = ""

    def finish(self, folder: Path, tell: Tell) -> Done:
        """Runs the protocol; a failed cell is recorded and tried again the next time."""
        began = time.perf_counter()
        folder = home(folder, self.beside)
        record = evaluate(
            [self.problem],
            self.contestants,
            seeds=self.seeds,
            out=folder,
            settings=self.settings,
            report=lambda line: tell(f"  {line}"),
            plan=self.thinning,
        )
        seconds = time.perf_counter() - began
        value = {
            "cells": [cell.to_dict() | {"facts": cell.facts} for cell in record.cells],
            **{name: _flat(getattr(record, name)) for name in _BY_GROUP},
        }
        files = (folder / CELLS / file_of(cell) for cell in record.cells)
        origins = [_origin(read_json(path)) for path in files]
        # As JSON gives it back, like the value of any other step.
        seeds = sorted({cell.seed for cell in record.cells})
        return Done(json.loads(dumps(value)), f"{seconds:.1f} s", origins, failures(record), seeds)


def home(folder: Path, beside: str) -> Path:
    """Returns the folder that holds the cells of a step of the experiment in ``folder``."""
    return folder.resolve().parent / beside if beside else folder


def record_of(*values: Mapping[str, Any]) -> Record:
    """Makes one record of the values of contests, for the tables of :mod:`gflowbench.protocol.presentation`."""
    cells = [Cell.from_dict(cell) for value in values for cell in value["cells"]]
    by_group: dict[str, dict[Group, Any]] = {
        name: {(gnn, dataset, explainer): found for value in values for gnn, dataset, explainer, found in value[name]}
        for name in _BY_GROUP
    }
    stability = {group: math.nan if share is None else share for group, share in by_group["stability"].items()}
    return Record(cells, stability=stability, thinned=by_group["thinned"], left_out=by_group["left_out"])


def _flat(by_group: Mapping[Group, Any]) -> list[list[Any]]:
    return [[*group, found] for group, found in by_group.items()]


def _origin(stored: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: stored[name] for name in ("created", "versions", "device")}
    return known | {"code": stored.get("code"), "seconds": stored.get("seconds")}
