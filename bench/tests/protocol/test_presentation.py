from gflowbench.protocol import Cell, Record, printed_numbers
from gflowbench.protocol.presentation import (
    IN_SHORT,
    OVERVIEWS,
    all_details,
    costs,
    details,
    failures,
    in_short,
    overview,
    overviews,
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


def test_the_short_table_is_a_part_of_the_long_one():
    cells = [Cell(name, "ba-shapes", "published", 0, {}, metrics={"auc_own": 0.5}) for name in ("degree", *IN_SHORT)]
    (table,) = in_short(Record(cells))
    rows, whole = dict(table.rows), dict(overview(Record(cells), "auc_own", "published").rows)
    assert next(iter(rows)) == "GFlowExplainer, this code"
    assert rows["GFlowExplainer, printed in the paper"] == whole["GFlowExplainer (paper)"] == "0.999 ± 0.000"
    assert rows["target"] == whole["target"]
    assert len(rows) == len(IN_SHORT) + 2
    assert in_short(Record(cells[:-1])) == []


def test_every_number_that_is_asked_for_has_its_table():
    values = dict.fromkeys(OVERVIEWS, 0.25) | {"milliseconds": 12.0, "fit_seconds": 3.0}
    tables = overviews(Record([Cell("mine", "ba-shapes", "published", 0, {}, "ok", values)]))
    assert [table.title.split(";")[0] for table in tables] == list(OVERVIEWS.values())
    assert {dict(table.rows)["mine"] for table in tables} == {"0.250", "12.00", "3.00"}
    by_title = {table.title.split(";")[0]: dict(table.rows) for table in tables}
    assert by_title["Explaining, milliseconds an instance"]["GNNExplainer (paper, its machine)"] == "53"
    assert by_title["Fitting, seconds"]["RG-Explainer, pre-training (paper, its machine)"] == "103"
    assert by_title["Accuracy of the first k nodes"]["SubgraphX (paper)"] == "0.990"


def test_minutes_of_all_seeds_add_up():
    def cell(explainer, dataset, seed, seconds):
        return Cell(explainer, dataset, "published", seed, {}, seconds=seconds)

    cells = [cell("slow", "ba-shapes", 0, 60.0), cell("slow", "ba-shapes", 1, 90.0), cell("quick", "tree-grid", 0, 6.0)]
    (table,) = costs(Record(cells))
    assert table.columns == ("explainer", "BA-Shapes", "Tree-Grid", "all")
    assert table.rows == (
        ("slow", "2.5", "-", "2.5"),
        ("quick", "-", "0.1", "0.1"),
        ("all", "2.5", "0.1", "2.6"),
    )
    assert costs(record()) == []  # cells of an earlier version


def test_failures_alone_show_in_one_table():
    (table,) = overviews(Record([Cell("mine", "ba-shapes", "published", 0, {}, FAILED, {}, "no luck")]))
    assert dict(table.rows)["mine"] == "failed"


def test_details_have_a_row_for_each_metric_that_was_measured():
    table = details(record(), "tree-cycles", "published")
    assert table.columns == ("metric", "random", "broken", "half")
    assert [row[0] for row in table.rows if row[1] != "-"] == [
        "AUC, own motif, pooled",
        "nodes of an explanation",
    ]
    assert len(overviews(record())) >= 1
    assert len(all_details(record())) == 1


def test_the_same_failure_is_said_once():
    assert failures(record()) == [
        "failed: broken on tree-cycles, published GNN, seed 0, 1: no luck",
        "failed: half on tree-cycles, published GNN, seed 1: bad luck",
    ]


def test_the_papers_table_is_whole():
    assert all(tuple(row) == printed_numbers.DATASETS for row in printed_numbers.AUC.values())
    assert printed_numbers.AUC["GFlowExplainer"]["mutagenicity"] == (0.882, 0.024)
    assert all(
        printed_numbers.TARGET_AUC[d].mean >= printed_numbers.AUC["GFlowExplainer"][d].mean
        for d in printed_numbers.DATASETS
    )
