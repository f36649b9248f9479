"""Markdown tables of the suites: one a score, a row for each task and GNN, a column for each explainer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

SCORES = {
    "auc": "Node AUC against the union of the truth",
    "concordance": "Concordance with absolute contributions",
    "sign": "Right signs of contributions",
    "exact": "Exact match of what is shown",
    "exact_parts": "Exact match, part by part",
    "exact_first": "Exact match of the first subgraph",
    "f1": "F1 of what is shown",
    "f1_first": "F1 of the first subgraph",
    "size": "Nodes shown",
    "sufficiency": "Sufficiency of what is shown",
    "necessity": "Necessity of what is shown",
    "characterization": "Characterization score of what is shown",
    "sufficiency@own": "Sufficiency of as many of the best nodes as ours shows",
    "necessity@own": "Necessity of as many of the best nodes as ours shows",
    "characterization@own": "Characterization score of as many of the best nodes as ours shows",
    "sufficiency@2": "Sufficiency of the best 2 nodes",
    "necessity@2": "Necessity of the best 2 nodes",
    "characterization@2": "Characterization score of the best 2 nodes",
    "sufficiency@4": "Sufficiency of the best 4 nodes",
    "necessity@4": "Necessity of the best 4 nodes",
    "characterization@4": "Characterization score of the best 4 nodes",
    "sufficiency@8": "Sufficiency of the best 8 nodes",
    "necessity@8": "Necessity of the best 8 nodes",
    "characterization@8": "Characterization score of the best 8 nodes",
    "robust_sufficiency@4": "Robust sufficiency of the best 4 nodes",
    "robust_necessity@4": "Robust necessity of the best 4 nodes",
    "only_error": "Error of the value with only what is shown, in spreads",
    "without_shift": "Shift of the value without what is shown, in spreads",
    "holds": "Share of explanations that the explainer stands by",
    "measured_holds": "Share of explanations that are better than random ones of their size",
}


def markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns the tables of some records, averaged over seeds, the GNNs and what was not learned."""
    sums: dict[str, dict[tuple[str, str], dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    scores: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    missed: dict[tuple[str, str, int], float] = {}
    explainers: list[str] = []
    for record in records:
        cell = record["identity"]
        row = (cell["task"], cell["gnn"])
        scores[row][cell["seed"]] = record["gnn_score"]
        if not record["learned"]:
            missed[(*row, cell["seed"])] = record["gnn_score"]
            continue
        if cell["explainer"] not in explainers:
            explainers.append(cell["explainer"])
        for name, value in record["summary"].items():
            if value is not None:
                sums[name][row].setdefault(cell["explainer"], []).append(value)
    blocks = [_gnn_table(scores)]
    if missed:
        told = (f"{task} {gnn} (seed {seed}: {_number(value)})" for (task, gnn, seed), value in missed.items())
        blocks.append(f"Not learned, left out of the scores: {'; '.join(told)}.")
    blocks += [_table(title, sums[name], explainers) for name, title in SCORES.items() if name in sums]
    return "\n\n".join(blocks) + "\n"


def _gnn_table(scores: Mapping[tuple[str, str], Mapping[int, float]]) -> str:
    lines = ["**Test accuracy, or R2, of the GNNs** (mean over seeds)", "", "| task | GNN | score | seeds |"]
    lines.append("|---|---|---|---|")
    for (task, gnn), values in scores.items():
        seeds = ", ".join(str(seed) for seed in values)
        lines.append(f"| {task} | {gnn} | {_number(sum(values.values()) / len(values))} | {seeds} |")
    return "\n".join(lines)


def _table(title: str, rows: Mapping[tuple[str, str], Mapping[str, list[float]]], explainers: Sequence[str]) -> str:
    shown = [name for name in explainers if any(name in row for row in rows.values())]
    lines = [f"**{title}**", "", f"| task | GNN | {' | '.join(shown)} |", "|---|---|" + "---|" * len(shown)]
    for (task, gnn), row in rows.items():
        values = [_number(sum(row[name]) / len(row[name])) if name in row else "-" for name in shown]
        lines.append(f"| {task} | {gnn} | {' | '.join(values)} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 2 else f"{value:.3f}"
