"""The page of a leaderboard, as Markdown: who is first and by how much, ranks, costs, and what failed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gflowbench.explainers.registry import names
from gflowbench.leaderboard.ranking import Standing, mean_ranks, standings
from gflowbench.protocol.presentation import TITLES, failures, thinning
from gflowbench.protocol.record import OK, Record, left_out_lines
from gflowexplainer.report.provenance import code_digest, environment
from gflowexplainer.report.tables import NOT_THERE, Table

TITLE_OF = {
    "auc_own": "AUC of edges, own motif, pooled",
    "auc_node": "AUC of nodes, mean of instances",
    "gea": "GEA: Jaccard index of the explanation with the truth",
    "characterization": "Characterization score",
    "robust_fidelity_plus": "Robust fidelity+",
    "robust_fidelity_minus": "Robust fidelity- (smaller is better)",
    "unfaithfulness": "GEF, unfaithfulness (smaller is better)",
    "sufficiency_area": "Fidelity-, mean over 1 to 16 nodes (smaller is better)",
}
LINK_SCORES = {
    "auc_edge": "AUC of the edges that a link depends on, mean of links",
    "path_hit_3": "Share of links of which the first 3 edges hold a true path",
    "path_hit_10": "Share of links of which the first 10 edges hold a true path",
}
SHOWN = {
    "shown_exact": "Exact match of what is shown",
    "shown_exact_parts": "Exact match, part by part",
    "shown_exact_first": "Exact match of the first subgraph",
    "shown_f1": "F1 of what is shown",
    "shown_concordance": "Concordance with absolute contributions",
    "shown_sign": "Right signs of contributions",
    "shown_sufficiency": "Sufficiency of what is shown",
    "shown_necessity": "Necessity of what is shown",
    "shown_only_error": "Error of the value with only what is shown, in spreads (smaller is better)",
    "shown_without_shift": "Shift of the value without what is shown, in spreads",
    "shown_sufficiency@4": "Sufficiency of the best 4 nodes",
    "shown_necessity@4": "Necessity of the best 4 nodes",
    "shown_characterization@4": "Characterization score of the best 4 nodes",
    "shown_holds": "Share of explanations that the explainer stands by",
    "shown_measured_holds": "Share of explanations that are better than random ones of their size",
}
"""Scores of what is shown, which the suites add (:func:`gflowbench.suites.run.measure_shown`)."""
_OF_NODES = tuple(name for name in TITLE_OF if name != "auc_own") + tuple(SHOWN)
SCORES = {
    "paper": tuple(TITLE_OF),
    **dict.fromkeys(("logic", "molecules", "compounds", "published"), _OF_NODES),
    **dict.fromkeys(("real", "null"), tuple(name for name in _OF_NODES if name not in ("auc_node", "gea"))),
    "links": tuple(LINK_SCORES),
}
"""Scores of a suite; the first one decides the sentences."""
_TITLES = TITLE_OF | SHOWN | LINK_SCORES
_FLOORS = frozenset((*names("floors"), *names("floors", links=True)))


def page(records: Mapping[str, Record], *, notes: Sequence[str] = ()) -> str:
    """Writes the page of some suites.

    Args:
        records: Results of the protocol by suite.
        notes: Lines below the head, such as how much was thinned.
    """
    made = environment()
    digest = code_digest("gflowbench", "gflowexplainer")
    blocks = [
        "# Leaderboard",
        f"Written by a command on {made['created'][:10]}, code `{digest}`, {made['device']['cpus']} cores. "
        "Floors come first: what they reach needs no explainer. A rank is shared by explainers that differ by no more "
        "than the spread over seeds and GNNs (.005 where there is one run). Evaluations are those of the model, an "
        "instance, fitting included.",
        *notes,
    ]
    for suite, record in records.items():
        blocks += _suite(suite, record)
    return "\n\n".join(blocks) + "\n"


def sentence(dataset: str, table: Sequence[Standing], cost: Mapping[str, float]) -> str:
    """Says of a task who is first, by how much, at which cost, and whether a floor would have done.

    Args:
        dataset: The task.
        table: Its standings, best first.
        cost: Milliseconds an instance of each explainer.
    """
    first = [s for s in table if s.rank == 1]
    best = table[0]
    behind = next((s for s in table if s.rank > 1), None)
    floor = next((s for s in table if s.explainer in _FLOORS), None)
    who = ", ".join(s.explainer for s in first)
    words = [f"**{TITLES.get(dataset, dataset)}**: {who} {'is' if len(first) == 1 else 'are'} first ({best.mean:.3f}"]
    words[0] += f", {cost[best.explainer]:.3g} ms an instance)" if best.explainer in cost else ")"
    if behind is not None:
        words.append(f"next is {behind.explainer} ({behind.mean:.3f})")
    if floor is None:
        return "; ".join(words) + "."
    if floor.rank == 1:
        words.append(f"the floor '{floor.explainer}' does as well ({floor.mean:.3f})")
    else:
        words.append(f"the best floor is '{floor.explainer}' ({floor.mean:.3f})")
    ours = next((s for s in table if s.explainer == "gflow"), None)
    if ours is not None and ours.rank > 1:
        words.append(f"ours is not first: rank {ours.rank} ({ours.mean:.3f})")
    return "; ".join(words) + "."


def _suite(suite: str, record: Record) -> list[str]:
    datasets = list(dict.fromkeys(cell.dataset for cell in record.cells))
    blocks = [f"## Suite {suite}", f"```bash\n{record.command}\n```"]
    main = SCORES[suite][0]
    cost = {dataset: _means(record, "milliseconds", dataset) for dataset in datasets}
    tables = {dataset: standings(record, dataset, main) for dataset in datasets}
    lines = [sentence(dataset, table, cost[dataset]) for dataset, table in tables.items() if table]
    lines.sort(key=lambda line: "ours is not first" not in line)
    blocks += [f"By {_TITLES[main]}:", "\n".join(f"- {line}" for line in lines)]
    for metric in SCORES[suite]:
        found = {dataset: standings(record, dataset, metric) for dataset in datasets}
        if any(found.values()):
            blocks.append(_ranked(_TITLES[metric], found, record).to_markdown().strip())
    blocks.append(_costs(record).to_markdown().strip())
    blocks += [table.to_markdown().strip() for table in thinning(record)]
    rest = [*left_out_lines(record.left_out), *failures(record)]
    if rest:
        blocks.append("\n".join(f"- {line}" for line in rest))
    return blocks


def _ranked(title: str, tables: Mapping[str, Sequence[Standing]], record: Record) -> Table:
    """Makes a table of explainers against tasks: mean, spread, and the rank in brackets."""
    ranks = mean_ranks(list(tables.values()))
    by_name = {dataset: {s.explainer: s for s in table} for dataset, table in tables.items()}
    rows = [
        (name, *(_cell(by_name[dataset].get(name)) for dataset in tables), f"{ranks[name]:.1f}")
        for name in _floors_first(ranks)
    ]
    heads = (TITLES.get(dataset, dataset) for dataset in tables)
    return Table(f"{title}; rank in brackets", ("explainer", *heads, "mean rank"), tuple(rows))


def _costs(record: Record) -> Table:
    columns = {"fit_seconds": "fitting, s", "milliseconds": "explaining, ms", "evaluations": "evaluations"}
    found = {metric: _means(record, metric) for metric in columns}
    rows = [
        (name, *(f"{found[metric][name]:.3g}" if name in found[metric] else NOT_THERE for metric in columns))
        for name in _floors_first(dict.fromkeys(cell.explainer for cell in record.cells if cell.status == OK))
    ]
    return Table("What it costs, mean over tasks", ("explainer", *columns.values()), tuple(rows))


def _means(record: Record, metric: str, dataset: str | None = None) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for cell in record.cells:
        value = cell.metrics.get(metric, math.nan)
        if cell.status == OK and dataset in (None, cell.dataset) and not math.isnan(value):
            values.setdefault(cell.explainer, []).append(value)
    return {name: sum(found) / len(found) for name, found in values.items()}


def _floors_first(found: Mapping[str, object]) -> list[str]:
    by_rank = sorted(found, key=lambda name: value if isinstance(value := found[name], float) else 0.0)
    return sorted(by_rank, key=lambda name: name not in _FLOORS)


def _cell(standing: Standing | None) -> str:
    if standing is None:
        return NOT_THERE
    spread = "" if math.isnan(standing.spread) else f" ± {standing.spread:.3f}"
    return f"{standing.mean:.3f}{spread} ({standing.rank})"
