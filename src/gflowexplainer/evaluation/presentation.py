"""The tables of a record: explainers against datasets, and all metrics of one dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gflowexplainer.evaluation import paper
from gflowexplainer.evaluation.metrics import METRICS
from gflowexplainer.evaluation.record import FAILED, Record, Summary
from gflowexplainer.evaluation.tables import NOT_THERE, Table, number

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
}
"""Rows of a detailed table: how a metric is called, and its digits."""

OVERVIEWS = {
    "auc_own": "AUC, own motif, pooled",
    "auc_all": "AUC, all motifs, pooled",
    "auc_own_mean": "AUC, own motif, mean of instances",
    "accuracy": "Accuracy of the first k nodes",
    "robust_fidelity_plus": "Robust fidelity+ (larger is better)",
    "robust_fidelity_minus": "Robust fidelity- (smaller is better)",
}
"""Metrics that get a table of explainers against datasets."""


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
        (explainer, *(_cell(found.get((explainer, dataset)), metric, 3) for dataset in datasets))
        for explainer in explainers
    ]
    if with_paper:
        rows += _paper_rows(metric, datasets, gnn)
    heads = tuple(TITLES.get(dataset, dataset) for dataset in datasets)
    return Table(f"{OVERVIEWS.get(metric, metric)}; {gnn} GNNs", ("explainer", *heads), tuple(rows))


def details(record: Record, dataset: str, gnn: str) -> Table:
    """Makes a table of all metrics of one dataset, metrics against explainers."""
    found = [s for s in record.summaries() if (s.dataset, s.gnn) == (dataset, gnn)]
    rows = [(title, *(_cell(s, metric, digits) for s in found)) for metric, (title, digits) in ROWS.items()]
    shown = [row for row in rows if any(text != NOT_THERE for text in row[1:])]
    title = f"{TITLES.get(dataset, dataset)}; {gnn} GNN"
    return Table(title, ("metric", *(s.explainer for s in found)), tuple(shown))


def overviews(record: Record) -> list[Table]:
    """Makes all tables of explainers against datasets that hold any number."""
    tables = [
        overview(record, metric, gnn)
        for gnn in dict.fromkeys(cell.gnn for cell in record.cells)
        for metric in OVERVIEWS
        if any(s.gnn == gnn and _cell(s, metric, 3) != NOT_THERE for s in record.summaries())
    ]
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


def _cell(summary: Summary | None, metric: str, digits: int) -> str:
    if summary is None:
        return NOT_THERE
    if not summary.seeds:
        return FAILED
    text = number(summary.mean.get(metric), summary.deviation.get(metric), digits)
    if summary.failed and text != NOT_THERE:
        text += f" ({len(summary.seeds)} of {len(summary.seeds) + len(summary.failed)} seeds)"
    return text


def _paper_rows(metric: str, datasets: Sequence[str], gnn: str) -> list[tuple[str, ...]]:
    printed: dict[str, Mapping[str, paper.Printed]] = {}
    if metric == "auc_own":
        printed = {f"{name} (paper)": row for name, row in paper.AUC.items()}
        printed["best later result"] = paper.BEST_LATER_AUC
        if gnn == "published":
            printed["target"] = paper.TARGET_AUC
    elif metric == "accuracy":
        printed = {f"{name} (paper)": row for name, row in paper.ACCURACY.items()}
    rows = [(name, *(number(*row[d]) if d in row else NOT_THERE for d in datasets)) for name, row in printed.items()]
    return [row for row in rows if any(text != NOT_THERE for text in row[1:])]
