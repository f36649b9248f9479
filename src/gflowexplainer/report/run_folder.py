"""The folder of a run: what was asked, with what, how training went, and what came out.

===========================  ==========================================================================================
``config.json``              The command, all its options and all settings.
``environment.json``         Versions and the kind of device.
``metrics.jsonl``            One line an update of the training.
``explainer.safetensors``    The fitted explainer; ``checkpoint.safetensors`` beside it lets a fit go on.
``explanations/``            One explanation a file.
``cases/``                   What else is shown of each: ground truth, scores of other explainers, names. The graph that
                             explanations of its nodes share is ``graph.safetensors`` and is stored once.
``results.json, .md, .tex``  The results as data and as tables; ``tables.json`` holds the tables for the report. An
                             evaluation has ``summary.json`` and, of every single seed, ``values.json``.
``report.html``              The report.
===========================  ==========================================================================================
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.files import file_name, is_file, read_json, write_json, write_text
from gflowexplainer.storage.identity import differences
from gflowexplainer.storage.provenance import command_line, environment
from gflowexplainer.training.checkpoint import CHECKPOINT
from gflowexplainer.training.curves import METRICS
from gflowexplainer.training.folder import EXPLAINER

if TYPE_CHECKING:
    from gflowexplainer.report import Case, Report

FORMAT = "gflowexplainer-run-1"
CONFIG, ENVIRONMENT, RESULTS, TABLES, REPORT = (
    "config.json",
    "environment.json",
    "results.json",
    "tables.json",
    "report.html",
)
EXPLANATIONS, CASES, GRAPH = "explanations", "cases", "graph.safetensors"
KIND = "case"


OWN = (
    *(CONFIG, ENVIRONMENT, RESULTS, TABLES, REPORT, "results.md", "results.tex", METRICS),
    *(EXPLAINER, CHECKPOINT, EXPLANATIONS, CASES, "figures", "attempts"),
)
"""Everything that a run writes, and a run that begins anew deletes."""


def clear(folder: Path) -> None:
    """Deletes what a run has left in its folder, and nothing else."""
    for name in OWN:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class Run:
    """A run in its folder; made by :meth:`begin`, found again by :meth:`open`."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.folder, self.config = folder, config
        self._shared: dict[str, Tensor] | None = None

    @classmethod
    def begin(
        cls,
        folder: str | Path,
        kind: str,
        question: Mapping[str, Any],
        *,
        identity: Mapping[str, str] | None = None,
        overwrite: bool = False,
        **more: Any,
    ) -> Run:
        """Makes the folder, or takes up the run in it if it is of the same question.

        Args:
            folder: The folder.
            kind: The command: ``"fit"``, ``"explain"``, ``"evaluate"`` or ``"demo"``.
            question: Everything that decides the result, as plain values; a run with another one is refused.
            identity: Names what the question is about (:mod:`~gflowexplainer.storage.identity`): model and data.
            overwrite: Whether to delete what an earlier run has left in the folder, whatever its question.
            **more: What else is worth keeping, such as the settings.
        """
        folder = Path(folder)
        more["identity"] = dict(identity or {})
        if overwrite and is_file(folder / CONFIG):
            clear(folder)
        config: dict[str, Any] = {"format": FORMAT, "kind": kind, "command": command_line(), "question": dict(question)}
        # As JSON gives it back: otherwise a tuple here would differ from the list there.
        config = json.loads(json.dumps(config | more, default=str))
        if is_file(folder / CONFIG):
            stored = read_json(folder / CONFIG)
            _refuse_another(folder, stored, config)
        write_json(folder / CONFIG, config)
        write_json(folder / ENVIRONMENT, environment())
        return cls(folder, config)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Finds a run again."""
        folder = Path(folder)
        if not is_file(folder / CONFIG):
            what = "holds no run" if os.path.isdir(folder) else "does not exist"
            raise ConfigError(
                f"'{folder}' {what}. Name the folder that fit, explain, evaluate or demo wrote (it has a {CONFIG})."
            )
        config = read_json(folder / CONFIG)
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise CheckpointError(f"'{folder / CONFIG}' is not of a run of this version. Run the command again.")
        return cls(folder, config)

    @property
    def name(self) -> str:
        """What to call the run beside others."""
        return self.folder.resolve().name

    def store(self, case: Case) -> Path:
        """Stores an explanation and what is shown with it; returns the explanation's file."""
        file = f"{file_name(case.name)}.safetensors"
        slim = self._without_shared(case.explanation)
        sections = {"others": dict(case.others), "case": {} if case.truth is None else {"truth": case.truth}}
        names = ("name", "labels", "smiles", "words", "classes", "types", "feature_names", "note")
        plain = {name: getattr(case, name) for name in names}
        write_checkpoint(
            self.folder / CASES / file, sections, {"kind": KIND, "case": plain, "identity": self._identity()}
        )
        path = self.folder / EXPLANATIONS / file
        slim.save(path)  # last: a case counts as stored when its explanation is there
        return path

    def _identity(self) -> dict[str, str]:
        return self.config.get("identity") or {}

    def has(self, name: str) -> bool:
        """Whether the case ``name`` is stored."""
        return (self.folder / EXPLANATIONS / f"{file_name(name)}.safetensors").is_file()

    def case(self, name: str) -> Case:
        """Reads one stored case."""
        return self._read(f"{file_name(name)}.safetensors")

    def cases(self) -> list[Case]:
        """Reads all stored cases: nodes, then graphs, in the order of their names, numbers counted as numbers."""
        files = sorted((self.folder / EXPLANATIONS).glob("*.safetensors"), key=lambda path: _natural(path.stem))
        cases = [self._read(path.name) for path in files]
        return sorted(cases, key=lambda case: case.explanation.explained_node is None)

    def curves(self) -> list[dict[str, float]]:
        """Reads the records of the training; empty where nothing was trained."""
        path = self.folder / METRICS
        if not path.is_file():
            return []
        records = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:  # the last line of a run that was killed
                continue
        return [record for record in records if isinstance(record, dict)]

    def write_results(self, results: Any, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
        """Writes the results as JSON, and the tables as JSON, Markdown and LaTeX."""
        write_json(self.folder / RESULTS, results)
        self.write_tables(tables, notes)

    def write_tables(self, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
        """Writes the tables as JSON, Markdown and LaTeX."""
        write_json(self.folder / TABLES, [vars(table) for table in tables])
        command = str(self.config["command"])
        write_text(self.folder / "results.md", f"`{command}`\n\n" + join(tables, "markdown", notes))
        write_text(self.folder / "results.tex", join(tables, "latex", [command, *notes]))

    def tables(self) -> list[Table]:
        """Reads the tables of the results."""
        if not (self.folder / TABLES).is_file():
            return []
        try:
            return [
                Table(entry["title"], tuple(entry["columns"]), tuple(tuple(row) for row in entry["rows"]))
                for entry in read_json(self.folder / TABLES)
            ]
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"'{self.folder / TABLES}' is damaged. Run the command again.") from error

    def report(self, *, title: str | None = None, cases: Sequence[Case] | None = None) -> Report:
        """Gathers everything that a report shows.

        Args:
            title: What to write above it.
            cases: The explained instances; by default the stored ones.
        """
        from gflowexplainer.report import Report

        environment = read_json(self.folder / ENVIRONMENT) if (self.folder / ENVIRONMENT).is_file() else {}
        return Report(
            title=str(self.config.get("title", f"GFlowExplainer: {self.config['kind']}")) if title is None else title,
            cases=self.cases() if cases is None else list(cases),
            curves=self.curves(),
            settings=_flat(self.config.get("settings", {})) | _flat(self.config["question"]),
            environment=_flat(environment),
            tables=self.tables(),
            command=str(self.config["command"]),
        )

    def _without_shared(self, explanation: SubgraphExplanation) -> SubgraphExplanation:
        """Takes out what the explanations of nodes of one graph share, after storing it once."""
        if explanation.explained_node is None:
            return explanation
        common = {
            name: value
            for name, value in explanation.items()
            if isinstance(value, Tensor) and name not in ("node_mask", "edge_mask", "index")
        }
        shared = self._graph()
        if shared is None:
            shared = {name: value.detach().cpu().clone() for name, value in common.items()}
            write_checkpoint(self.folder / CASES / GRAPH, {"graph": shared}, {"kind": "graph"})
            self._shared = shared
        slim = copy.copy(explanation)
        for name, value in common.items():
            if name in shared and shared[name].shape == value.shape and torch.equal(shared[name], value.cpu()):
                del slim[name]
        return slim

    def _graph(self) -> dict[str, Tensor] | None:
        if self._shared is None and (self.folder / CASES / GRAPH).is_file():
            self._shared = read_checkpoint(self.folder / CASES / GRAPH)[0].get("graph", {})
        return self._shared

    def _read(self, file: str) -> Case:
        from gflowexplainer.report import Case

        explanation = SubgraphExplanation.load(self.folder / EXPLANATIONS / file)
        if explanation.explained_node is not None:
            for name, value in (self._graph() or {}).items():
                if name not in explanation:
                    explanation[name] = value
        sections, meta = read_checkpoint(self.folder / CASES / file)
        if meta.get("kind") != KIND:
            raise CheckpointError(f"'{self.folder / CASES / file}' holds no case of a report.")
        different = differences(meta.get("identity"), self._identity())
        if different:
            raise CheckpointError(
                f"'{self.folder / CASES / file}' belongs to another run: {'; '.join(different[:3])}. "
                "Delete the folder, or run the command again with --overwrite."
            )
        truth = sections.get("case", {}).get("truth")
        try:
            return Case(explanation=explanation, truth=truth, others=sections.get("others", {}), **meta["case"])
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"'{self.folder / CASES / file}' holds a case of another version.") from error


def _refuse_another(folder: Path, stored: Any, config: dict[str, Any]) -> None:
    way = "Choose another --out, or begin anew with --overwrite."
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise ConfigError(f"'{folder / CONFIG}' is not of a run of this version. {way}")
    if stored.get("kind") != config["kind"]:
        raise ConfigError(f"'{folder}' holds a run of '{stored.get('kind')}', not of '{config['kind']}'. {way}")
    there, here = stored.get("question"), config["question"]
    there = there if isinstance(there, dict) else {}
    different = sorted(name for name in {*there, *here} if there.get(name) != here.get(name))
    if different:
        shown = ", ".join(f"{name}: {there.get(name)!r} there, {here.get(name)!r} here" for name in different[:3])
        raise ConfigError(f"'{folder}' holds a run of another question ({shown[:300]}). {way}")
    said = differences(stored.get("identity"), config["identity"])
    if said:
        raise ConfigError(f"'{folder}' holds a run of another question: {'; '.join(said[:5])}. {way}")


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Writes nested settings as one table; what is not set is left out."""
    if not isinstance(values, Mapping):
        return {prefix: values} if prefix and values is not None else {}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}.{name}" if prefix else str(name))
    return found


def _natural(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
