"""Tables and figures of the distribution benchmark, from its finished runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.measuring import write_json
from gflowexplainer.report.figures import save_figure
from gflowexplainer.storage.files import write_bytes

STYLES = {
    "flow_matching": ("#0072b2", "-", "o"),
    "detailed_balance": ("#d55e00", "--", "s"),
    "subtrajectory_balance": ("#009e73", "-.", "^"),
    "log_partition_variance": ("#cc79a7", ":", "D"),
    "trajectory_balance": ("#e69f00", "-", "v"),
    "conditional_trajectory_balance": ("#56b4e9", "--", "P"),
    "raw_flow_matching": ("#000000", "-.", "x"),
}
LINESTYLES = {"dag": "-", "sequence": "--", "graph": ":"}


def words(name: str) -> str:
    """Writes a setting's name as words."""
    return name.replace("_", " ")


def summarize(folder: Path) -> None:
    """Writes ``summary.json``, ``summary.md`` and the figures of all runs in ``folder``."""
    single, amortised = finished(folder, "single"), finished(folder, "amortised")
    tables = []
    if single:
        tables.append(single_table(single))
        draw_single(single, folder / "single")
    if amortised:
        tables += [amortised_table(amortised), samples_table(amortised)]
        draw_amortised(amortised, folder / "amortised")
    write_json(folder / "summary.json", {"tables": tables, "computed": origins([*single, *amortised])})
    text = "\n\n".join(markdown(table) for table in tables) + "\n"
    write_bytes(folder / "summary.md", text.encode())
    print(text)


def finished(folder: Path, prefix: str) -> list[dict[str, Any]]:
    """Reads the finished runs whose name begins with ``prefix``."""
    return [json.loads(path.read_text()) for path in sorted((folder / "runs").glob(f"{prefix}-*.json"))]


def origins(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Says how many runs were computed by which command, code and versions, on which days; the runs are not kept."""
    groups: dict[str, dict[str, Any]] = {}
    for run in runs:
        same = {name: run.get(name) for name in ("command", "code", "versions", "threads", "device")}
        group = groups.setdefault(json.dumps(same), same | {"runs": 0, "seeds": [], "dates": []})
        group["runs"] += 1
        group["seeds"] = sorted({*group["seeds"], run["job"].get("seed", 0)})
        group["dates"] = sorted({*group["dates"], run["date"]})
    return list(groups.values())


def single_table(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Total variation on single instances: one row for objective and rule, one column for each instance."""
    sizes = sorted({run["num_subgraphs"] for run in runs})
    rows = []
    for objective, parents in dict.fromkeys((run["job"]["objective"], run["job"]["parents"]) for run in runs):
        mine = {
            run["num_subgraphs"]: run
            for run in runs
            if (run["job"]["objective"], run["job"]["parents"]) == (objective, parents)
        }
        cells = [f"{mine[size]['curve'][-1]['total_variation']:.3f}" if size in mine else "-" for size in sizes]
        iterations = max(run["curve"][-1]["iteration"] for run in mine.values())
        seconds = max(run["curve"][-1]["seconds"] for run in mine.values())
        rows.append([words(objective), parents, *cells, str(iterations), f"{seconds:.0f}"])
    rows.sort(key=lambda row: (row[1] != "dag", row[1], row[0]))
    head = ["objective", "parents", *[f"{size} subgraphs" for size in sizes], "updates", "seconds at most"]
    return {"title": "Total variation to the exact target, one instance, node identities", "head": head, "rows": rows}


def amortised_table(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Distance and AUC at the end and after 100 updates, mean and spread over seeds."""
    rows = []
    for dataset in dict.fromkeys(run["job"]["dataset"] for run in runs):
        for objective in STYLES:
            mine = [r for r in runs if (r["job"]["dataset"], r["job"]["objective"]) == (dataset, objective)]
            if not mine:
                continue
            early = [next((p for p in r["curve"] if p["iteration"] >= 100), r["curve"][-1]) for r in mine]
            last = [r["curve"][-1] for r in mine]
            rows.append(
                [
                    dataset,
                    words(objective),
                    spread([r["exact_auc"] for r in mine]),
                    spread([p["total_variation"] for p in early]),
                    spread([p["auc"] for p in early]),
                    spread([p["total_variation"] for p in last]),
                    spread([p["auc"] for p in last]),
                    f"{np.mean([p['seconds'] for p in last]):.0f}",
                ]
            )
    head = ["dataset", "objective", "AUC of the exact target", "distance at 100", "AUC at 100"]
    head += ["distance at the end", "AUC at the end", "seconds"]
    updates = max(run["curve"][-1]["iteration"] for run in runs)
    seeds = len({run["job"]["seed"] for run in runs})
    title = f"One policy for all instances, {updates} updates, {seeds} seed(s); distance: total variation to the target"
    return {"title": title, "head": head, "rows": rows}


def samples_table(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """AUC of edge probabilities from 64 samples beside the exact ones, in both weightings."""
    rows = []
    for dataset in dict.fromkeys(run["job"]["dataset"] for run in runs):
        for objective in STYLES:
            mine = [r for r in runs if (r["job"]["dataset"], r["job"]["objective"]) == (dataset, objective)]
            for weighting in ("policy", "reward") if mine else ():
                found = [r["samples"][weighting] for r in mine]
                gaps = [abs(value - part["exact"]) for part in found for value in part["samples"]]
                rows.append(
                    [
                        dataset,
                        words(objective),
                        weighting,
                        spread([part["exact"] for part in found]),
                        spread([value for part in found for value in part["samples"]]),
                        f"{max(gaps):.3f}",
                    ]
                )
    head = ["dataset", "objective", "weighting", "AUC, exact marginals", "AUC, 64 samples", "largest gap"]
    return {"title": "Edge probabilities from 64 samples against exact ones", "head": head, "rows": rows}


def spread(values: list[float]) -> str:
    """Writes mean and standard deviation, or the value alone if there is one only."""
    return f"{values[0]:.3f}" if len(values) == 1 else f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def markdown(table: dict[str, Any]) -> str:
    """Writes a table as Markdown."""
    lines = [f"**{table['title']}**", "", "| " + " | ".join(table["head"]) + " |", "|" + "---|" * len(table["head"])]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in table["rows"]])


def draw_single(runs: list[dict[str, Any]], path: Path) -> None:
    """Draws the distance over training, one panel for each instance."""
    sizes = sorted({run["num_subgraphs"] for run in runs})
    figure, panels = plt.subplots(1, len(sizes), figsize=(4.2 * len(sizes), 3.6), sharey=True, squeeze=False)
    for panel, size in zip(panels[0], sizes, strict=True):
        for run in (run for run in runs if run["num_subgraphs"] == size):
            colour, _, marker = STYLES[run["job"]["objective"]]
            parents = run["job"]["parents"]
            label = words(run["job"]["objective"]) + ("" if parents == "dag" else f", parents: {parents}")
            steps = [point["iteration"] for point in run["curve"]]
            values = [point["total_variation"] for point in run["curve"]]
            panel.plot(
                steps, values, color=colour, linestyle=LINESTYLES[parents], marker=marker, markevery=4, label=label
            )
        panel.axhline(0.03, color="0.5", linewidth=0.8)
        panel.set(yscale="log", xlabel="updates", title=f"{size} connected subgraphs")
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("total variation to the exact target")
    add_legend(figure, panels, columns=3, room=0.2)
    save(figure, path)


def draw_amortised(runs: list[dict[str, Any]], path: Path) -> None:
    """Draws distance and AUC over training for each dataset, mean over seeds with the range."""
    datasets = list(dict.fromkeys(run["job"]["dataset"] for run in runs))
    figure, panels = plt.subplots(
        2, len(datasets), figsize=(max(6.4, 5 * len(datasets)), 6.8), sharex=True, squeeze=False
    )
    for column, dataset in enumerate(datasets):
        for objective, (colour, line, marker) in STYLES.items():
            mine = [r for r in runs if (r["job"]["dataset"], r["job"]["objective"]) == (dataset, objective)]
            if not mine:
                continue
            steps = [point["iteration"] for point in mine[0]["curve"]]
            for row, name in enumerate(("total_variation", "auc")):
                values = np.array([[point[name] for point in run["curve"]] for run in mine])
                panel = panels[row][column]
                panel.plot(
                    steps,
                    values.mean(axis=0),
                    color=colour,
                    linestyle=line,
                    marker=marker,
                    markevery=3,
                    markersize=4,
                    label=words(objective),
                )
                panel.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.12)
        exact = np.mean([run["exact_auc"] for run in runs if run["job"]["dataset"] == dataset])
        panels[1][column].axhline(exact, color="0.4", linewidth=1.2)
        panels[1][column].annotate("exact target", (steps[-1], exact), ha="right", va="bottom", fontsize=8)
        panels[0][column].set_title(dataset)
        panels[1][column].set_xlabel("updates")
    panels[0][0].set_ylabel("total variation")
    panels[1][0].set_ylabel("AUC of edge marginals (own)")
    for panel in panels.flat:
        panel.grid(alpha=0.3)
    add_legend(figure, panels, columns=1 + len(datasets), room=0.16 if len(datasets) == 1 else 0.1)
    save(figure, path)


def add_legend(figure: plt.Figure, panels: np.ndarray, columns: int, room: float) -> None:
    """Puts one legend for all panels below them; ``room`` is the share of the height it takes."""
    entries = {}
    for panel in panels.flat:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncol=columns, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, room, 1, 1))


def save(figure: plt.Figure, path: Path) -> None:
    """Writes a figure as PNG and SVG."""
    save_figure(figure, path)
    plt.close(figure)
