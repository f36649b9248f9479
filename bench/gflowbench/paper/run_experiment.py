"""Runs an experiment: finishes its steps, then writes tables, figures and verdicts into its folder.

============================  ==========================================================================
``cells/``                    One file a finished step; a second run goes on from them.
``summary.json``              Tables, verdicts, notes, and what is needed to repeat it.
``values.json``               Every value that these are made from.
``results.md``, ``.tex``      The same for people and papers.
``figures/``                  Every figure as PNG and SVG.
============================  ==========================================================================
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gflowbench.paper.experiment import Experiment, Outcome, Results, Scope, counted
from gflowbench.paper.steps import Done, Step, Tell
from gflowbench.protocol.cells import one_line
from gflowbench.protocol.record import SUMMARY, VALUES
from gflowexplainer.errors import CheckpointError, ConfigError, GFlowExplainerError
from gflowexplainer.report.provenance import environment
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.files import read_json, write_json, write_text

FORMAT = "gflowexplainer-experiment-2"
FULL, FAST = Path("results"), Path("runs/reproduce-fast")
FIGURES = "figures"


class ExperimentError(GFlowExplainerError, RuntimeError):
    """Parts of an experiment failed, so that it has no results."""


def base_folder(fast: bool) -> Path:
    """Names the folder of all experiments' folders; fast runs go elsewhere, so that they never replace full ones."""
    return FAST if fast else FULL


def run(
    experiment: Experiment,
    scope: Scope,
    folder: str | Path,
    *,
    tell: Tell = lambda line: None,
    cells_only: bool = False,
    part: tuple[int, int] | None = None,
) -> dict[str, Any] | None:
    """Runs an experiment; what lies finished in ``folder`` with the same settings is not computed again.

    Args:
        experiment: Which one.
        scope: How much of it.
        folder: Where everything goes.
        tell: Is told about each step, one line.
        cells_only: Whether to stop when all steps are finished, without tables and figures.
        part: ``(k, n)`` finishes only each n-th step from the k-th on (from 1), for several processes at once; stops
            there.

    Returns:
        What was written to ``summary.json``; ``None`` if nothing was.
    """
    folder = Path(folder)
    if part is not None and not 1 <= part[0] <= part[1]:
        raise ConfigError(f"'part' must be k/n with 1 <= k <= n (got {part[0]}/{part[1]}).")
    drawn = not (cells_only or part)
    if drawn:
        _require_matplotlib()
    steps = experiment.plan(scope)
    done, failed = _finish(steps, folder, tell, part or (1, 1))
    if failed:
        raise ExperimentError(
            f"{len(failed)} of {counted(len(steps), 'step')} failed, the others are stored. The first: {failed[0]}"
        )
    if not drawn:
        return None
    results = Results(scope, {name: each.value for name, each in done.items()})
    outcome = experiment.present(results)
    return _write(experiment, results, outcome, list(done.values()), folder)


def _finish(
    steps: Sequence[Step], folder: Path, tell: Tell, part: tuple[int, int]
) -> tuple[dict[str, Done], list[str]]:
    """Finishes the steps of a part; gives what came out, and one line for each that failed."""
    done: dict[str, Done] = {}
    failed = []
    mine = list(enumerate(steps, start=1))[part[0] - 1 :: part[1]]
    for position, step in mine:
        head = f"[{position}/{len(steps)}] {step.name}"
        try:
            done[step.name] = step.finish(folder, tell)
        except CheckpointError:
            raise  # a folder that cannot be written to will not be writable for the next step either
        except Exception as error:
            failed.append(f"{step.name}: {one_line(error)}")
            tell(f"{head}: failed: {one_line(error)}")
            if not isinstance(error, GFlowExplainerError):
                tell(traceback.format_exc().rstrip())
            continue
        tell(f"{head}: {done[step.name].how}")
        for line in done[step.name].failures:
            tell(f"  {line}")
    return done, failed


def _write(
    experiment: Experiment, results: Results, outcome: Outcome, done: Sequence[Done], folder: Path
) -> dict[str, Any]:
    """Draws the figures and writes all files; the summary last, as it says that the rest is there."""
    from gflowexplainer.report.figures import save_figure

    for drawing in outcome.drawings:
        save_figure(drawing.draw(), folder / FIGURES / drawing.name, ("png", "svg"))
    scope = results.scope
    failures = [line for each in done for line in each.failures]
    record = {
        "format": FORMAT,
        "experiment": experiment.name,
        "title": experiment.title,
        "command": command_of(experiment.name, scope),
        "fast": scope.fast,
        "seeds": scope.num_seeds,
        "seeds_used": sorted({seed for each in done for seed in each.seeds}),
        **environment(),
        "computed": _origins([origin for each in done for origin in each.origins]),
        "verdicts": [vars(verdict) for verdict in outcome.verdicts],
        "tables": [vars(table) for table in outcome.tables],
        "figures": [{"name": drawing.name, "caption": drawing.caption} for drawing in outcome.drawings],
        "notes": [*outcome.notes, *failures],
        "failures": failures,
    }
    write_text(folder / "results.md", _markdown(record, outcome.tables))
    heads = [str(record["command"]), *(f"{v.verdict}: {v.claim} {v.evidence}" for v in outcome.verdicts)]
    write_text(folder / "results.tex", join(outcome.tables, "latex", [*heads, *record["notes"]]))
    write_json(folder / VALUES, results.values)
    write_json(folder / SUMMARY, record)
    return read_summary(folder)


def read_summary(folder: str | Path) -> dict[str, Any]:
    """Reads what an experiment found, without the single values."""
    path = Path(folder) / SUMMARY
    record = read_json(path) if path.is_file() else None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise CheckpointError(f"'{folder}' holds no results of an experiment. Run 'gflowexplainer reproduce' again.")
    return record


def tables_of(record: Mapping[str, Any]) -> list[Table]:
    """Makes the tables of stored results."""
    return [Table(t["title"], tuple(t["columns"]), tuple(tuple(row) for row in t["rows"])) for t in record["tables"]]


def command_of(name: str, scope: Scope) -> str:
    """Writes the command that makes these results, whatever command they were made by."""
    return " ".join(["gflowexplainer", "reproduce", name, *options_of(scope)])


def options_of(scope: Scope) -> list[str]:
    """Writes a scope as options of the command line."""
    words = ["--fast"] if scope.fast else []
    words += [] if scope.num_seeds is None else ["--seeds", str(scope.num_seeds)]
    return words + ([] if scope.device == "cpu" else ["--device", scope.device])


def _markdown(record: Mapping[str, Any], tables: Sequence[Table]) -> str:
    verdicts = Table(
        "Verdicts",
        ("claim of the paper", "verdict", "evidence"),
        tuple((v["claim"], v["verdict"], v["evidence"]) for v in record["verdicts"]),
    )
    size = "Fast run." if record["fast"] else "Full run."
    figures = "".join(f"![{f['caption']}]({FIGURES}/{f['name']}.png)\n\n" for f in record["figures"])
    head = f"# {record['title']}\n\n`{record['command']}`\n\n{size}\n\n"
    return head + join([*tables, verdicts], "markdown") + "\n" + figures + join([], "markdown", record["notes"])


def _origins(origins: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Groups steps by versions and device: how many, by which code, from when to when, and in how many seconds."""
    groups: dict[str, dict[str, Any]] = {}
    for origin in origins:
        same = {"versions": origin["versions"], "device": origin["device"]}
        group = groups.setdefault(str(same), same | {"steps": 0, "first": origin["created"], "seconds": 0.0})
        group["steps"] += 1
        group["code"] = sorted({*group.get("code", []), origin["code"]} - {None})
        group["first"] = min(group["first"], origin["created"])
        group["last"] = max(group.get("last", ""), origin["created"])
        group["seconds"] += origin["seconds"] or 0.0
    return [group | {"seconds": round(group["seconds"], 1)} for group in groups.values()]


def _require_matplotlib() -> None:
    from gflowexplainer.drawing.painting import require_matplotlib

    try:
        require_matplotlib()
    except ConfigError as error:
        raise ConfigError(f"{error} Or compute now and draw elsewhere, with --cells-only.") from error
