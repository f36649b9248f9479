"""Tables of the accuracy gates: is each met, what is behind simpler explainers, and every task by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.gate_jobs import PEERS, PEERS_OF, TASKS_OF, Job
from gflowexplainer.report.tables import Table

Rows = Mapping[Job, Mapping[str, Any]]
Group = tuple[str, str, str, int | None]
"""Gate, task, GNN and bound: what is averaged over seeds."""
Groups = Mapping[Group, Mapping[str, float]]
_BEHIND, _SLACK = 0.01, 0.005
_SIZES, _BOTH = ("@2", "@4", "@8", ""), ("sufficiency", "necessity")
KEYS = {
    "six": ("auc_own", "auc_own_mean", "auc_all"),
    "shown": ("exact", "exact_first", "size", "auc"),
    "null": ("holds",),
    "real": (*(f"{score}{size}" for size in _SIZES for score in _BOTH), "frontier"),
    "user-item-attr": ("auc", "hit@3", "hit@10"),
}
"""Scores of the line of a task."""
_SUITE_KEYS = ("auc", "exact", "exact_parts", "exact_first", "size", "gnn_score")


@dataclass(frozen=True)
class Check:
    """A gate: what the mean over its groups, the least, or the mean as a share that must stay small are held to."""

    title: str
    gate: str
    key: str
    tasks: tuple[str, ...]
    bounds: dict[str, float]


_AIMS = dict(zip(TASKS_OF["six"], (0.999, 0.998, 0.99, 0.99, 0.95, 0.985), strict=True))
_COMPOUNDS = {"group": 0.99, "group-and-group": 0.9, "group-without-group": 0.97}
_NULL, _LINKS = TASKS_OF["null"], TASKS_OF["user-item-attr"]
CHECKS = (
    *(Check(f"six: AUC own, {task}", "six", "auc_own", (task,), {"least": aim}) for task, aim in _AIMS.items()),
    Check("shown: first subgraph exact", "shown", "exact_first", TASKS_OF["shown"], {"least": 0.9}),
    Check("shown: parts exact", "shown", "exact", TASKS_OF["shown"], {}),
    Check("logic: node AUC", "logic", "auc", TASKS_OF["logic"], {"mean": 0.985, "least": 0.93}),
    Check("logic: parts of and-far, count", "logic", "exact_parts", ("and-far", "count"), {"least": 0.8}),
    Check("molecules: node AUC", "molecules", "auc", TASKS_OF["molecules"], {}),
    *(
        Check(f"compounds: node AUC, {task}{kind}", "compounds", "auc", (task + kind,), {"mean": aim})
        for task, aim in _COMPOUNDS.items()
        for kind in ("", "-wide")
    ),
    Check("real: on the frontier", "real", "frontier", TASKS_OF["real"], {"least": 1.0}),
    Check("null: called an explanation", "null", "holds", _NULL[:-1], {"at most": 0.05}),
    Check("null: real ones refused", "null", "refused", _NULL[-1:], {"at most": 0.05}),
    Check("user-item-attr: AUC", "user-item-attr", "auc", _LINKS, {"mean": 0.985}),
    Check("user-item-attr: path hit at 10", "user-item-attr", "hit@10", _LINKS, {"mean": 0.6}),
)


def tables(rows: Rows, num_missing: int) -> str:
    """Returns all tables as Markdown."""
    found = _groups(rows)
    many = [_gate_table(found), _behind(found)]
    for gate in dict.fromkeys(group[0] for group in found):
        peers = tuple(f"{name}.auc" for name in PEERS) if PEERS_OF.get(gate) == PEERS else ()
        columns = (*KEYS.get(gate, _SUITE_KEYS), *peers, "seeds", "seconds")
        groups = [group for group in found if group[0] == gate]
        lines = tuple((_name(group), *(_number(found[group].get(key)) for key in columns)) for group in groups)
        many.append(Table(f"{gate}: means over seeds", ("task", *columns), lines))
    times = defaultdict[str, list[float]](list)
    for job, row in rows.items():
        times[job.gate].append(row["total_seconds"])
    lines = tuple((gate, str(len(some)), f"{sum(some):.0f}", f"{max(some):.0f}") for gate, some in times.items())
    many.append(Table("Seconds of processes", ("gate", "jobs", "all", "longest"), lines))
    blocks = [table.to_markdown() for table in many if table.columns]
    not_learned = [f"{job.name} ({row['gnn_score']:.3f})" for job, row in rows.items() if row.get("learned") is False]
    failed = [f"- {job.name}: `{row['error'].strip().splitlines()[-1]}`" for job, row in rows.items() if "error" in row]
    blocks += [f"Not learned, not explained: {', '.join(not_learned)}.\n"] if not_learned else []
    blocks += ["\n".join(["Failed:", *failed]) + "\n"] if failed else []
    blocks += [f"{num_missing} jobs were not finished.\n"] if num_missing else []
    return "\n".join(blocks)


def differences(rows: Rows, before: Rows, name: str) -> str:
    """Returns the table of this run minus another one, over the jobs that both have."""
    both = [job for job in rows if job in before and "error" not in rows[job]]
    new, old = _groups({job: rows[job] for job in both}), _groups({job: before[job] for job in both})
    lines = []
    for group, row in new.items():
        for key in (*KEYS.get(group[0], _SUITE_KEYS[:-2]), "seconds"):
            if key in row and key in old.get(group, {}):
                cells = (_number(old[group][key]), _number(row[key]), f"{row[key] - old[group][key]:+.3f}")
                lines.append((_name(group), key, *cells))
    return "\n" + Table(f"Against {name}", ("task", "score", "before", "now", "change"), tuple(lines)).to_markdown()


def _groups(rows: Rows) -> dict[Group, dict[str, float]]:
    """Averages over seeds, each score over the jobs that have it, and adds what follows from several scores."""
    values: dict[Group, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for job, row in sorted(rows.items(), key=lambda item: _order(item[0])):
        if "error" in row or row.get("learned") is False:
            continue
        for key, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[job.gate, job.task, job.gnn, job.max_nodes][key].append(value)
    found = {}
    for group, lists in values.items():
        row = {key: fmean(some) for key, some in lists.items()} | {"seeds": len(lists["total_seconds"])}
        if "holds" in row:
            row["refused"] = 1 - row["holds"]
        if group[0] == "real":
            row["frontier"] = fmean(_on_frontier(row, size) for size in _SIZES)
        found[group] = row
    return found


def _on_frontier(row: Mapping[str, float], size: str) -> bool:
    """Whether nobody is at least as good in both, and better in one by more than the slack, as ours at a size.

    What ours shows is held against as many of the best nodes of others, and against what greedy growth shows.
    """
    others = [(peer, size or "@own") for peer in PEERS_OF["real"]] + ([] if size else [("greedy", "")])
    gains = [[row[f"{peer}.{key}{end}"] - row[f"{key}{size}"] for key in _BOTH] for peer, end in others]
    return not any(min(gain) >= 0 and max(gain) > _SLACK for gain in gains)


def _gate_table(found: Groups) -> Table:
    lines = []
    for check in CHECKS:
        chosen = [row for group, row in found.items() if group[0] == check.gate and group[1] in check.tasks]
        values = [row[check.key] for row in chosen if check.key in row]
        if values:
            is_share = "at most" in check.bounds
            mean, worst = round(fmean(values), 3), round((max if is_share else min)(values), 3)
            misses = {"mean": check.bounds.get("mean", 0) - mean, "least": check.bounds.get("least", 0) - worst}
            misses["at most"] = mean - check.bounds.get("at most", 1)
            met = "-" if not check.bounds else "NO" if any(miss > 0 for miss in misses.values()) else "yes"
            told = ", ".join(f"{kind} {bound}" for kind, bound in check.bounds.items())
            lines.append((check.title, _number(mean), _number(worst), told, met))
    return Table("Gates", ("gate", "mean", "worst", "target", "met"), tuple(lines))


def _behind(found: Groups) -> Table:
    """Returns the tasks where a simpler explainer is ahead; no columns where nothing was compared."""
    compared = [(group, row) for group, row in found.items() if "auc" in row and f"{PEERS[0]}.auc" in row]
    lines = []
    for group, row in compared:
        theirs = {name: row[f"{name}.auc"] for name in PEERS}
        best = max(theirs, key=lambda name: theirs[name])
        if theirs[best] > row["auc"] + _BEHIND:
            cells = (_number(row["auc"]), best, _number(theirs[best]), f"{row['auc'] - theirs[best]:+.3f}")
            lines.append((f"{group[0]} {_name(group)}", *cells))
    title = f"Behind {', '.join(PEERS)} by more than {_BEHIND}: {len(lines)} of {len(compared)}"
    columns = ("task", "ours", "best", "its node AUC", "difference")
    return Table(title, columns if compared else (), tuple(lines))


def _order(job: Job) -> tuple[Any, ...]:
    gates = list(TASKS_OF)
    return gates.index(job.gate), TASKS_OF[job.gate].index(job.task), job.gnn, job.max_nodes or 0, job.seed


def _name(group: Group) -> str:
    _, task, gnn, bound = group
    return " ".join([task, *([gnn] if gnn != "published" else []), *([f"at {bound}"] if bound else [])])


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}" if abs(value) < 2 else f"{value:.1f}"
