"""The tables of a record: explainers against datasets, and all metrics of one dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gflowbench.metrics.measurement import METRICS
from gflowbench.protocol import printed_numbers
from gflowbench.protocol.record import FAILED, Record, Summary
from gflowexplainer.report.tables import NOT_THERE, Table, number

TITLES = {
    "ba-shapes": "BA-Shapes",
    "ba-community": "BA-Community",
    "tree-cycles": "Tree-Cycles",
    "tree-grid": "Tree-Grid",
    "ba-2motifs": "BA-2motifs",
    "mutagenicity": "Mutagenicity",
    "graph-sst2": "Graph-SST2",
}
ROWS: dict[str, tuple[str, int]] = {name: (title, 3) for name, title in METRICS.items()} | {
    "size": (METRICS["size"], 1),
    "stability": ("stability over seeds", 3),
    "fit_seconds": ("fitting, seconds", 2),
    "milliseconds": ("explaining, ms an instance", 2),
    "evaluations": ("evaluations of the model an instance, fitting included", 1),
}
"""Rows of a detailed table: how a metric is called, and its digits."""

OVERVIEWS = {
    "auc_own": "AUC, own motif, pooled",
    "auc_all": "AUC, all motifs, pooled",
    "auc_own_mean": "AUC, own motif, mean of instances",
    "accuracy": "Accuracy of the first k nodes",
    "fidelity_plus": "Fidelity+, class probability (larger is better)",
    "fidelity_minus": "Fidelity-, class probability (smaller is better)",
    "robust_fidelity_plus": "Robust fidelity+ (larger is better)",
    "robust_fidelity_minus": "Robust fidelity- (smaller is better)",
    "sparsity": "Sparsity: share of nodes left out",
    "connectivity": "Connectivity: share of explanations in one piece",
    "milliseconds": "Explaining, milliseconds an instance",
    "fit_seconds": "Fitting, seconds",
}
"""Metrics that get a table of explainers against datasets."""

IN_SHORT = {
    "gflow": "GFlowExplainer, this code",
    "gnnexplainer": "GNNExplainer",
    "pgexplainer": "PGExplainer",
    "subgraphx": "SubgraphX",
    "rg-explainer": "RG-Explainer",
    "degree-decomposition": "DEGREE",
    "random": "floor: random growth",
    "probability": "floor: class probability",
}
"""Explainers of the short table, and how they are called in it."""
_IN_SHORT_PRINTED = {"GFlowExplainer (paper)": "GFlowExplainer, printed in the paper", "target": "target"}

THINNED = "*"
"""Marks numbers of fewer instances or seeds than the rest of the table."""


def overview(record: Record, metric: str, gnn: str, *, with_paper: bool = True) -> Table:
    """Makes a table of one metric, explainers against datasets, the paper's numbers below.

    Args:
        record: The results.
        metric: Which metric.
        gnn: Which GNNs were explained.
        with_paper: Whether rows of the paper are added where it has this metric.
    """
    found = {(s.explainer, s.dataset): s for s in record.summaries() if s.gnn == gnn}
    datasets = list(dict.fromkeys(dataset for _, dataset in found))
    explainers = list(dict.fromkeys(explainer for explainer, _ in found))
    rows = [
        (explainer, *(_marked(found.get((explainer, dataset)), metric) for dataset in datasets))
        for explainer in explainers
    ]
    if with_paper:
        rows += _paper_rows(metric, datasets, gnn)
    heads = tuple(map(_title, datasets))
    return Table(f"{OVERVIEWS.get(metric, metric)}; {gnn} GNNs", ("explainer", *heads), tuple(rows))


def in_short(record: Record) -> list[Table]:
    """Makes the short table: ours, the best peers and floors, and what the paper prints; none if one is missing."""
    tables = []
    for gnn in dict.fromkeys(cell.gnn for cell in record.cells):
        whole = overview(record, "auc_own", gnn)
        rows = {row[0]: row[1:] for row in whole.rows}
        if rows.keys() >= IN_SHORT.keys():
            names = IN_SHORT | {name: title for name, title in _IN_SHORT_PRINTED.items() if name in rows}
            shown = tuple((title, *rows[name]) for name, title in names.items())
            tables.append(Table(f"In short: {whole.title}", whole.columns, shown))
    return tables


def details(record: Record, dataset: str, gnn: str) -> Table:
    """Makes a table of all metrics of one dataset, metrics against explainers; what is thinned has a mark."""
    found = [s for s in record.summaries() if (s.dataset, s.gnn) == (dataset, gnn)]
    rows = [(title, *(_cell(s, metric, digits) for s in found)) for metric, (title, digits) in ROWS.items()]
    shown = [row for row in rows if any(text != NOT_THERE for text in row[1:])]
    title = f"{_title(dataset)}; {gnn} GNN"
    return Table(title, ("metric", *(s.explainer + THINNED * bool(s.thinned) for s in found)), tuple(shown))


def thinning(record: Record) -> list[Table]:
    """Makes the table that says what the mark of thinned numbers stands for; none if there are none."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for s in record.summaries():
        if s.thinned:
            groups.setdefault((s.gnn, s.explainer, s.thinned), []).append(f"{_title(s.dataset)} ({s.instances})")
    rows = tuple((who, how, ", ".join(where)) for (_, who, how), where in groups.items())
    title = f"Thinned, marked {THINNED} above: how, and on which datasets (with the number of instances)"
    return [Table(title, ("explainer", "how", "datasets"), rows)] if rows else []


def costs(record: Record) -> list[Table]:
    """Makes the table of what all cells of each explainer took together, measuring included; none if not known."""
    spent: dict[str, dict[str, float]] = {}
    for cell in record.cells:
        row = spent.setdefault(cell.explainer, {})
        row[cell.dataset] = row.get(cell.dataset, 0.0) + cell.seconds / 60
    datasets = list(dict.fromkeys(cell.dataset for cell in record.cells))
    total = {dataset: sum(row.get(dataset, 0.0) for row in spent.values()) for dataset in datasets}
    rows = tuple(
        (name, *(number(row.get(dataset), digits=1) for dataset in datasets), number(sum(row.values()), digits=1))
        for name, row in [*spent.items(), ("all", total)]
    )
    heads = ("explainer", *map(_title, datasets), "all")
    return [Table("Minutes that all seeds took together", heads, rows)] if any(total.values()) else []


def overviews(record: Record) -> list[Table]:
    """Makes all tables of explainers against datasets that hold any number; failures alone show in the first."""
    tables = []
    for gnn in dict.fromkeys(cell.gnn for cell in record.cells):
        shown = [s for s in record.summaries() if s.gnn == gnn]
        for place, metric in enumerate(OVERVIEWS):
            empty = (NOT_THERE,) if place == 0 else (NOT_THERE, FAILED)
            if any(_cell(s, metric, 3) not in empty for s in shown):
                tables.append(overview(record, metric, gnn))
    return tables


def all_details(record: Record) -> list[Table]:
    """Makes the detailed table of every dataset and GNN."""
    pairs = dict.fromkeys((cell.dataset, cell.gnn) for cell in record.cells)
    return [details(record, dataset, gnn) for dataset, gnn in pairs]


def failures(record: Record) -> list[str]:
    """Says what failed, one line each; the same failure of several seeds is said once."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for cell in record.cells:
        if cell.status == FAILED:
            groups.setdefault((cell.dataset, cell.gnn, cell.explainer, cell.error), []).append(cell.seed)
    return [
        f"failed: {explainer} on {dataset}, {gnn} GNN, seed {', '.join(map(str, seeds))}: {error}"
        for (dataset, gnn, explainer, error), seeds in groups.items()
    ]


def _marked(summary: Summary | None, metric: str) -> str:
    text = _cell(summary, metric, ROWS[metric][1])
    return text + THINNED if summary is not None and summary.thinned and text not in (NOT_THERE, FAILED) else text


def _cell(summary: Summary | None, metric: str, digits: int) -> str:
    if summary is None:
        return NOT_THERE
    if not summary.seeds:
        return FAILED
    text = number(summary.mean.get(metric), summary.deviation.get(metric), digits)
    if summary.failed and text != NOT_THERE:
        text += f" ({len(summary.seeds)} of {len(summary.seeds) + len(summary.failed)} seeds)"
    return text


def _title(dataset: str) -> str:
    return TITLES.get(dataset, dataset)


def _paper_rows(metric: str, datasets: Sequence[str], gnn: str) -> list[tuple[str, ...]]:
    digits = 3
    printed: dict[str, Mapping[str, printed_numbers.Printed]] = {}
    if metric == "auc_own":
        printed = {f"{name} (paper)": row for name, row in printed_numbers.AUC.items()}
        printed["best later result"] = printed_numbers.BEST_LATER_AUC
        if gnn == "published":
            printed["target"] = printed_numbers.TARGET_AUC
    elif metric == "accuracy":
        printed = {f"{name} (paper)": row for name, row in printed_numbers.ACCURACY.items()}
    elif metric == "milliseconds":
        printed = {f"{name} (paper, its machine)": row for name, row in printed_numbers.INFERENCE_MILLISECONDS.items()}
        digits = 0
    elif metric == "fit_seconds":
        printed = {
            f"{name}, one epoch (paper, its machine)": row for name, row in printed_numbers.EPOCH_SECONDS.items()
        }
        printed["RG-Explainer, pre-training (paper, its machine)"] = printed_numbers.PRETRAINING_SECONDS
        digits = 0
    rows = [
        (name, *(number(*row[d], digits) if d in row else NOT_THERE for d in datasets)) for name, row in printed.items()
    ]
    return [row for row in rows if any(text != NOT_THERE for text in row[1:])]
