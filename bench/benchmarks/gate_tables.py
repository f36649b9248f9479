"""Tables of the accuracy gates: is each met, what is behind simpler explainers, and every task by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.gate_jobs import PEERS, PEERS_OF, TASKS_OF, Job
from gflowexplainer.report.tables import Table

Rows = Mapping[Job, Mapping[str, Any]]
Group = tuple[str, str, str, int | None]
"""Gate, task, GNN and bound: what is averaged over seeds."""
_BEHIND, _SLACK = 0.01, 0.005
KEYS = {
    "six": ("auc_own", "auc_own_mean", "auc_all"),
    "shown": ("exact", "exact_first", "size", "auc"),
    "null": ("holds",),
    "real": tuple(f"{score}{size}" for size in ("@2", "@4", "@8", "") for score in ("sufficiency", "necessity")),
    "user-item-attr": ("auc", "hit@3", "hit@10"),
}
"""Scores of the line of a task."""
_SUITE_KEYS = ("auc", "exact", "exact_parts", "exact_first", "size", "gnn_score")


@dataclass(frozen=True)
class Check:
    """A gate: bounds of the mean over all groups, of the least one, or of the greatest one."""

    title: str
    gate: str
    key: str
    tasks: tuple[str, ...]
    mean: float | None = None
    least: float | None = None
    most: float | None = None


_AIMS = dict(zip(TASKS_OF["six"], (0.999, 0.998, 0.99, 0.99, 0.95, 0.985), strict=True))
_COMPOUNDS = {"group": 0.99, "group-and-group": 0.9, "group-without-group": 0.97}
CHECKS = (
    *(Check(f"six: AUC own, {task}", "six", "auc_own", (task,), least=aim) for task, aim in _AIMS.items()),
    Check("shown: parts exact", "shown", "exact", TASKS_OF["shown"], least=0.9),
    Check("shown: first exact", "shown", "exact_first", TASKS_OF["shown"], least=0.9),
    Check("logic: node AUC", "logic", "auc", TASKS_OF["logic"], mean=0.985, least=0.93),
    Check("logic: parts of and-far, count", "logic", "exact_parts", ("and-far", "count"), least=0.8),
    Check("molecules: node AUC (no target)", "molecules", "auc", TASKS_OF["molecules"]),
    *(
        Check(f"compounds: node AUC, {task}{kind}", "compounds", "auc", (task + kind,), mean=aim)
        for task, aim in _COMPOUNDS.items()
        for kind in ("", "-wide")
    ),
    Check("real: on the frontier", "real", "frontier", TASKS_OF["real"], least=1.0),
    Check("null: called an explanation", "null", "holds", TASKS_OF["null"][:-1], most=0.05),
    Check("null: real ones refused", "null", "refused", TASKS_OF["null"][-1:], most=0.05),
    Check("user-item-attr: AUC", "user-item-attr", "auc", TASKS_OF["user-item-attr"], mean=0.985),
    Check("user-item-attr: path hit at 10", "user-item-attr", "hit@10", TASKS_OF["user-item-attr"], mean=0.6),
)


def tables(rows: Rows, num_missing: int) -> str:
    """Returns all tables as Markdown."""
    found = _groups(rows)
    gates, many = _gate_table(found), Table("", (), ())
    blocks = [gates.to_markdown(), *_peer_blocks(found)]
    for gate in dict.fromkeys(group[0] for group in found):
        keys = KEYS.get(gate, _SUITE_KEYS)
        peers = tuple(f"{name}.auc" for name in PEERS) if PEERS_OF.get(gate) == PEERS else ()
        if gate == "real":
            keys = (*keys, "frontier")
        lines = [
            (_name(group), *(_number(row.get(key)) for key in (*keys, *peers, "seeds", "seconds")))
            for group, row in found.items()
            if group[0] == gate
        ]
        many = Table(f"{gate}: means over seeds", ("task", *keys, *peers, "seeds", "seconds"), tuple(lines))
        blocks.append(many.to_markdown())
    not_learned = [f"{job.name} ({row['gnn_score']:.3f})" for job, row in rows.items() if row.get("learned") is False]
    if not_learned:
        blocks.append(f"Not learned, not explained: {', '.join(not_learned)}.\n")
    times = defaultdict[str, list[float]](list)
    for job, row in rows.items():
        times[job.gate].append(row["total_seconds"])
    lines = [(gate, str(len(some)), f"{sum(some):.0f}", f"{max(some):.0f}") for gate, some in times.items()]
    blocks.append(Table("Seconds of processes", ("gate", "jobs", "all", "longest"), tuple(lines)).to_markdown())
    failed = [f"- {job.name}: `{row['error'].strip().splitlines()[-1]}`" for job, row in rows.items() if "error" in row]
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
            row["frontier"] = fmean(not _beaten(row, ours, theirs) for ours, theirs in _sizes(row))
        found[group] = row
    return found


def _sizes(row: Mapping[str, float]) -> Iterator[tuple[str, list[str]]]:
    """Yields each size of ours with what others say at it; as shown: as many of their nodes, and greedy's own."""
    peers = PEERS_OF["real"]
    for size in ("@2", "@4", "@8", ""):
        names = [(peer, size or "@own") for peer in peers] + ([("greedy", "")] if not size else [])
        yield size, [f"{peer}.%s{end}" for peer, end in names if f"{peer}.sufficiency{end}" in row]


def _beaten(row: Mapping[str, float], size: str, others: list[str]) -> bool:
    """Whether another one is at least as good in both, and better in one by more than the slack."""
    ours = [row[f"{score}{size}"] for score in ("sufficiency", "necessity")]
    for other in others:
        gains = [row[other % score] - own for score, own in zip(("sufficiency", "necessity"), ours, strict=True)]
        if min(gains) >= 0 and max(gains) > _SLACK:
            return True
    return False


def _gate_table(found: Mapping[Group, Mapping[str, float]]) -> Table:
    lines = []
    for check in CHECKS:
        values = [
            row[check.key]
            for group, row in found.items()
            if group[0] == check.gate and group[1] in check.tasks and check.key in row
        ]
        if not values:
            continue
        mean, least, most = (round(value, 3) for value in (fmean(values), min(values), max(values)))
        wanted = [
            (f"mean {check.mean}", mean >= (check.mean or 0)) if check.mean is not None else None,
            (f"all {check.least}", least >= (check.least or 0)) if check.least is not None else None,
            (f"at most {check.most}", mean <= (check.most or 0)) if check.most is not None else None,
        ]
        bounds = [one for one in wanted if one is not None]
        met = "-" if not bounds else "yes" if all(holds for _, holds in bounds) else "NO"
        worst = most if check.most is not None else least
        lines.append((check.title, _number(mean), _number(worst), ", ".join(told for told, _ in bounds), met))
    return Table("Gates", ("gate", "mean", "worst", "target", "met"), tuple(lines))


def _peer_blocks(found: Mapping[Group, Mapping[str, float]]) -> list[str]:
    """Returns the table of tasks where a simpler explainer is ahead."""
    lines, count = [], 0
    for group, row in found.items():
        theirs = {name: row[f"{name}.auc"] for name in PEERS if f"{name}.auc" in row}
        if not theirs or "auc" not in row or group[0] == "real":
            continue
        count += 1
        best = max(theirs, key=lambda name: theirs[name])
        if theirs[best] > row["auc"] + _BEHIND:
            change = f"{row['auc'] - theirs[best]:+.3f}"
            lines.append((f"{group[0]} {_name(group)}", _number(row["auc"]), best, _number(theirs[best]), change))
    if not count:
        return []
    title = f"Behind {', '.join(PEERS)} by more than {_BEHIND}: {len(lines)} of {count} tasks with their GNNs"
    columns = ("task", "ours", "best", "its node AUC", "difference")
    return [Table(title, columns, tuple(lines)).to_markdown() if lines else f"**{title}**\n"]


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
