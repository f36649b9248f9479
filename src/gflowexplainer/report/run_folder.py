"""The folder of a run: what was explained, with what, how training went, and what came out.

===========================  ==========================================================================================
``config.json``              The command, its options and settings.
``environment.json``         Versions and the kind of device.
``files.jsonl``              The files that the run has written, with digests: no other file is replaced or deleted.
``metrics.jsonl``            One line an update of the training.
``explainer.safetensors``    The fitted explainer; ``checkpoint.safetensors`` beside it lets a fit go on.
``explanations/``            One explanation a file.
``cases/``                   What else is shown of each: ground truth, scores of other explainers, names.
``graph.safetensors``        The graph that explanations of its nodes share.
``results.json, .md, .tex``  The results as data and as tables; ``tables.json`` holds the tables for the report.
``report.html``              The report.
===========================  ==========================================================================================
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gflowexplainer import SubgraphExplanation, TypedExplanation
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.report.provenance import command_line, environment
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.files import dumps, file_name, is_file, read_json, write_text
from gflowexplainer.storage.identity import differences
from gflowexplainer.storage.manifest import Manifest

if TYPE_CHECKING:
    from gflowexplainer.report import Case, Report

FORMAT = "gflowexplainer-run-2"
CONFIG, ENVIRONMENT, RESULTS, TABLES, REPORT = (
    *("config.json", "environment.json", "results.json", "tables.json"),
    "report.html",
)
FITTED = ("explainer.safetensors", "checkpoint.safetensors", "metrics.jsonl")
"""What a fit in the folder of a run writes."""
EXPLANATIONS, CASES, GRAPH, METRICS = "explanations", "cases", "graph.safetensors", FITTED[2]
_WAY = "Choose another --out, or begin anew with --overwrite."
_TEXTS = ("labels", "smiles", "words", "classes", "types", "feature_names", "note")
"""Fields of a case that are stored as JSON."""


class Run:
    """A run in its folder; made by :meth:`begin`, found again by :meth:`open`."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.folder, self.config, self.files = folder, config, Manifest(folder)
        self._shared: dict[str, Tensor] | None = None

    @classmethod
    def begin(
        cls,
        folder: str | Path,
        kind: str,
        options: Mapping[str, Any],
        *,
        identity: Mapping[str, str] | None = None,
        overwrite: bool = False,
        **more: Any,
    ) -> Run:
        """Makes the folder, or takes up the run in it if it is of the same inputs.

        Args:
            folder: The folder.
            kind: The command, such as ``"fit"`` or ``"explain"``.
            options: Everything that decides the result, as plain values; a run with another one is refused.
            identity: Digests of model and data (:mod:`~gflowexplainer.storage.identity`).
            overwrite: Whether to delete what an earlier run has written into the folder.
            **more: What else is worth keeping, such as the settings.
        """
        folder = Path(folder)
        config: dict[str, Any] = {"format": FORMAT, "kind": kind, "command": command_line(), "options": dict(options)}
        # As JSON gives it back: otherwise a tuple here would differ from the list there.
        config = json.loads(json.dumps(config | {"identity": dict(identity or {})} | more, default=str))
        run = cls(folder, config)
        if is_file(folder / CONFIG):
            stored = cls.open(folder).config
            if overwrite:
                run.files.delete()
            else:
                _refuse_another(folder, stored, config)
        elif run.files.any_whole() and overwrite:
            run.files.delete()
        elif run.files.any_whole():
            raise ConfigError(f"'{folder}' holds files of a run, but not its {CONFIG}. {_WAY}")
        run.files.claim(CONFIG, ENVIRONMENT, RESULTS, TABLES, "results.md", "results.tex", REPORT)
        run.write(CONFIG, dumps(config, indent=1))
        run.write(ENVIRONMENT, dumps(environment(), indent=1))
        return run

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Finds a run again."""
        folder = Path(folder)
        if not is_file(folder / CONFIG):
            what = "holds no run" if os.path.isdir(folder) else "does not exist"
            raise ConfigError(f"'{folder}' {what}. Name the folder that fit or explain wrote (it has a {CONFIG}).")
        config = read_json(folder / CONFIG)
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise ConfigError(f"'{folder / CONFIG}' is not of a run of this version. Choose another folder.")
        for name, kind in (("kind", str), ("command", str), ("options", dict), ("identity", dict)):
            if not isinstance(config.get(name), kind):
                raise CheckpointError(f"'{folder / CONFIG}' is damaged: it has no '{name}'. Run the command again.")
        run = cls(folder, config)
        run.files.has(CONFIG)  # raises an error if it has changed
        return run

    @property
    def name(self) -> str:
        """What to call the run beside others."""
        return self.folder.resolve().name

    def write(self, name: str, text: str) -> Path:
        """Writes a text file of the run."""
        with self.files.writing(name) as path:
            return write_text(path, text)

    def store(self, case: Case, explanation: Any = None) -> Path:
        """Stores a case; returns the file of its explanation.

        Args:
            case: What is shown.
            explanation: The explanation, if the case shows another form of it, as that of a typed graph.
        """
        file = f"{file_name(case.name)}.safetensors"
        typed = explanation is not None and not isinstance(explanation, SubgraphExplanation)
        stored = explanation if typed else self._without_shared(case.explanation)
        sections = {"others": dict(case.others), "case": {} if case.truth is None else {"truth": case.truth}}
        texts = {} if typed else {name: getattr(case, name) for name in _TEXTS}
        with self.files.writing(f"{CASES}/{file}") as path:
            write_checkpoint(path, sections, {"kind": "case", "name": case.name, "typed": typed, "case": texts})
        with self.files.writing(f"{EXPLANATIONS}/{file}") as path:
            stored.save(path)  # last: a case counts as stored when its explanation is there
        return path

    def has(self, name: str) -> bool:
        """Returns whether a case is stored."""
        file = f"{file_name(name)}.safetensors"
        return self.files.has(f"{EXPLANATIONS}/{file}") and self.files.has(f"{CASES}/{file}")

    def case(self, name: str) -> Case:
        """Reads one stored case."""
        file = f"{file_name(name)}.safetensors"
        return self._read(file) if self.has(name) else self._missing(name)

    def cases(self) -> list[Case]:
        """Reads all stored cases: nodes, then graphs, in the order of their names, numbers counted as numbers."""
        files = sorted((Path(name).name for name in self.files.inside(EXPLANATIONS)), key=_natural)
        return sorted(map(self._read, files), key=lambda case: case.explanation.explained_node is None)

    def curves(self) -> list[dict[str, float]]:
        """Reads the records of the training; empty where nothing was trained."""
        path = self.folder / METRICS
        records = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
            try:
                records.append(json.loads(line))
            except ValueError:  # the last line of a run that was killed
                continue
        return [record for record in records if isinstance(record, dict)]

    def write_results(self, results: Any, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
        """Writes the results as JSON, and the tables as JSON, Markdown and LaTeX."""
        self.write(RESULTS, dumps(results, indent=1))
        self.write_tables(tables, notes)

    def write_tables(self, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
        """Writes the tables as JSON, Markdown and LaTeX."""
        self.write(TABLES, dumps([vars(table) for table in tables], indent=1))
        command = self.config["command"]
        self.write("results.md", f"`{command}`\n\n" + join(tables, "markdown", notes))
        self.write("results.tex", join(tables, "latex", [command, *notes]))

    def tables(self) -> list[Table]:
        """Reads the tables of the results."""
        if not self.files.has(TABLES):
            return []
        entries = read_json(self.folder / TABLES)
        return [Table(one["title"], tuple(one["columns"]), tuple(map(tuple, one["rows"]))) for one in entries]

    def report(self, *, title: str | None = None, cases: Sequence[Case] | None = None) -> Report:
        """Returns everything that a report shows.

        Args:
            title: What to write above it.
            cases: The explained instances; by default the stored ones.
        """
        from gflowexplainer.report import Report

        return Report(
            title=str(self.config.get("title", f"GFlowExplainer: {self.config['kind']}")) if title is None else title,
            cases=self.cases() if cases is None else list(cases),
            curves=self.curves(),
            settings=_flat(self.config.get("settings", {})) | _flat(self.config["options"]),
            environment=_flat(read_json(self.folder / ENVIRONMENT)) if self.files.has(ENVIRONMENT) else {},
            tables=self.tables(),
            command=self.config["command"],
        )

    def _without_shared(self, explanation: Any) -> Any:
        """Returns the explanation of a node without its graph, which is stored once for all of them."""
        if explanation.explained_node is None:
            return explanation
        common = {
            name: value
            for name, value in explanation.items()
            if isinstance(value, Tensor) and name not in ("node_mask", "edge_mask", "index")
        }
        if not self._graph():
            self._shared = {name: value.detach().cpu().clone() for name, value in common.items()}
            with self.files.writing(GRAPH) as path:
                write_checkpoint(path, {"graph": self._shared}, {"kind": "graph"})
        shared, slim = self._graph(), copy.copy(explanation)
        for name, value in common.items():
            if name in shared and shared[name].shape == value.shape and torch.equal(shared[name], value.cpu()):
                del slim[name]
        return slim

    def _graph(self) -> dict[str, Tensor]:
        if self._shared is None:
            self._shared = read_checkpoint(self.folder / GRAPH)[0].get("graph", {}) if self.files.has(GRAPH) else {}
        return self._shared

    def _read(self, file: str) -> Case:
        from gflowexplainer.report import Case

        path = self.folder / EXPLANATIONS / file
        if not self.files.has(f"{CASES}/{file}"):
            self._missing(path.stem)
        sections, meta = read_checkpoint(self.folder / CASES / file)
        if meta["typed"]:
            return TypedExplanation.load(path).case(meta["name"])
        explanation = SubgraphExplanation.load(path)
        if explanation.explained_node is not None:
            for name, value in self._graph().items():
                if name not in explanation:
                    explanation[name] = value
        more: dict[str, Any] = {"truth": sections.get("case", {}).get("truth"), "others": sections.get("others", {})}
        return Case(meta["name"], explanation, **more, **meta["case"])

    def _missing(self, name: str) -> Any:
        raise CheckpointError(f"'{self.folder}' holds no explanation of '{name}'. Run the same command again.")


def write_run_report(run: Run, cases: Any = None, path: Path | None = None, title: str | None = None) -> Path:
    """Writes the report of a run into its folder, or to ``path``."""
    from gflowexplainer.report.page import write_report

    report = run.report(cases=cases, title=title)
    if path is not None:
        return write_report(report, path)
    with run.files.writing(REPORT) as place:
        return write_report(report, place)


def _refuse_another(folder: Path, stored: dict[str, Any], config: dict[str, Any]) -> None:
    if stored["kind"] != config["kind"]:
        raise ConfigError(f"'{folder}' holds a run of '{stored['kind']}', not of '{config['kind']}'. {_WAY}")
    there, here = stored["options"], config["options"]
    different = sorted(name for name in {*there, *here} if there.get(name) != here.get(name))
    said = [f"{name}: {there.get(name)!r} there, {here.get(name)!r} here" for name in different]
    said += differences(stored["identity"], config["identity"])
    if said:
        raise ConfigError(f"'{folder}' holds a run of other inputs ({'; '.join(said[:4])[:400]}). {_WAY}")


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Returns nested settings as one table; what is not set is left out."""
    if not isinstance(values, Mapping):
        return {prefix: values} if prefix and values is not None else {}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}.{name}" if prefix else str(name))
    return found


def _natural(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
