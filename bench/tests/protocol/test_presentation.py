from gflowbench.protocol import Cell, Record
from gflowbench.protocol.presentation import (
    overview,
)
from gflowbench.protocol.record import FAILED


def record():
    def cell(explainer, seed, auc, status="ok", error=""):
        metrics = {} if status == FAILED else {"auc_own": auc, "size": 5.0}
        return Cell(explainer, "tree-cycles", "published", seed, {}, status, metrics, error)

    return Record(
        [
            cell("random", 0, 0.70),
            cell("random", 1, 0.72),
            cell("broken", 0, 0, FAILED, "no luck"),
            cell("broken", 1, 0, FAILED, "no luck"),
            cell("half", 0, 0.5),
            cell("half", 1, 0, FAILED, "bad luck"),
        ]
    )


def test_an_overview_shows_explainers_failures_and_the_paper():
    table = overview(record(), "auc_own", "published")
    rows = dict(table.rows)
    assert table.columns == ("explainer", "Tree-Cycles")
    assert rows["random"] == "0.710 ± 0.014"
    assert rows["broken"] == "failed"
    assert rows["half"] == "0.500 (1 of 2 seeds)"
    assert rows["GFlowExplainer (paper)"] == "0.964 ± 0.028"
    assert rows["target"] == "0.990"
    assert "GFlowExplainer (paper)" not in dict(overview(record(), "auc_all", "published").rows)
