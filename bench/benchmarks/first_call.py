"""What the first call without a fit takes on Cora, what the next ones do, and whether they are as good as after a fit.

Sufficiency and necessity are those of the suites (:mod:`gflowbench.suites.scoring`), of the best eight nodes: the
probability of the class with only them, and its fall without them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.measuring import environment, results_folder, threads, write_json
from gflowbench.suites.cases import Case, make_cases
from gflowbench.suites.citation import GNNS, fit_cora_gnn, make_cora_task
from gflowbench.suites.explaining import explain_cases, read_explanation
from gflowbench.suites.scoring import NodeExplanation, node_sets, score_cases, summarize
from gflowbench.suites.task import SuiteTask
from gflowexplainer import GFlowExplainer
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.files import write_text

NODES, FIRST, TOP, HOPS = 24, 3, 8, 3
"""Explained nodes, those whose call is the first of an explainer, nodes that are scored, and hops that a GNN sees."""
WAYS = ("auto", "flow")


def measure(gnn: str, seed: int, number: int) -> dict[str, Any]:
    """Times calls of explainers that were not fitted, and scores them beside one that was."""
    task = make_cora_task(seed)
    model, accuracy = fit_cora_gnn(gnn, task, seed)
    model.eval()
    cases = make_cases(model, task, task.splits["test"][:number].tolist(), correct=False, num_hops=HOPS)
    found: dict[str, Any] = {"GNN": gnn, "accuracy": accuracy, "nodes": len(cases)}
    for way in WAYS:
        first = [_call(GFlowExplainer(seed=seed, inference=way), model, task, case)[1] for case in cases[:FIRST]]
        explainer = GFlowExplainer(seed=seed, inference=way)
        calls = [_call(explainer, model, task, case) for case in cases]
        explanations = [read_explanation(case, one) for case, (one, _) in zip(cases, calls, strict=True)]
        found[way] = {
            "first": first,
            "next": [seconds for _, seconds in calls[1:]],
            "scores": _scores(model, cases, explanations),
        }
    found["fitted"] = _scores(model, cases, explain_cases(model, task, cases, explainer="gflow", seed=seed))
    return found


def _call(explainer: GFlowExplainer, model: Any, task: SuiteTask, case: Case) -> tuple[Any, float]:
    """Explains one node and looks at its mask and its subgraphs; returns the explanation and the seconds."""
    begin = time.perf_counter()
    (found,) = explainer.explain(model, task.graphs[0], case.instance, model_config=task.model_config, progress=False)
    _ = found.node_mask, found.subgraphs
    return found, time.perf_counter() - begin


def _scores(model: Any, cases: Sequence[Case], found: Sequence[NodeExplanation]) -> list[float]:
    sets = [node_sets(case, one, top=(TOP,)) for case, one in zip(cases, found, strict=True)]
    means = summarize(score_cases(model, cases, found, sets))
    return [means[f"sufficiency@{TOP}"], means[f"necessity@{TOP}"]]


def main(fast: bool = False) -> None:
    """Measures the GNNs of Cora on two threads."""
    folder = results_folder("first_call", fast)
    with threads(2):
        found = [measure(gnn, 0, 4 if fast else NODES) for gnn in (GNNS[:1] if fast else GNNS)]
    write_json(folder / "results.json", {"rows": found, **environment()})
    text = join([table(found)], "markdown", ["`python -m benchmarks first_call`."])
    write_text(folder / "summary.md", text)
    print(text)


def table(found: Sequence[dict[str, Any]]) -> Table:
    """Makes the table of what was measured."""
    title = (
        f"Cora, {found[0]['nodes']} nodes, 2 threads: a call (median), sufficiency / necessity of the best {TOP} nodes"
    )
    head = ("GNN", "inference", "first call, s", "next calls, s", "slowest, s", "without a fit", "fitted")
    rows = [
        (one["GNN"], way, *_seconds(one[way]), _both(one[way]["scores"]), _both(one["fitted"]))
        for one in found
        for way in WAYS
    ]
    return Table(title, head, tuple(rows))


def _seconds(calls: dict[str, list[float]]) -> list[str]:
    values = (median(calls["first"]), median(calls["next"]), max(calls["first"] + calls["next"]))
    return [f"{value:.2f}" for value in values]


def _both(scores: Sequence[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in scores)
