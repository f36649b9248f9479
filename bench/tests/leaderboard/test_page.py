from gflowbench.leaderboard import page
from gflowbench.leaderboard.page import sentence
from gflowbench.leaderboard.ranking import standings
from gflowbench.protocol.record import FAILED, Cell, Record


def cell(explainer: str, value: float, dataset: str = "or", **more) -> Cell:
    metrics = {"auc_node": value, "gea": value, "milliseconds": 12.5, "fit_seconds": 1.0, "evaluations": 33.0}
    return Cell(explainer, dataset, "gin 0", 0, {}, metrics=metrics, **more)


def test_the_sentence_says_who_is_first_and_what_a_floor_does():
    record = Record([cell("degree", 0.7), cell("gflow", 0.8), cell("eig-search", 0.95)])
    text = sentence("or", standings(record, "or", "auc_node"), {"eig-search": 12.5})
    assert text == (
        "**or**: eig-search is first (0.950, 12.5 ms an instance); next is gflow (0.800); "
        "the best floor is 'degree' (0.700); ours is not first: rank 2 (0.800)."
    )


def test_the_page_has_floors_first_costs_and_failures():
    cells = [cell("gflow", 0.9), cell("random", 0.4), cell("gstarx", 0.0, status=FAILED, error="out of memory")]
    cells += [cell("gflow", 0.6, "count"), cell("random", 0.7, "count")]
    text = page({"logic": Record(cells, command="gflowexplainer leaderboard")}, notes=["A first look."])
    table = text[text.index("**AUC of nodes") :]
    assert table.index("| random |") < table.index("| gflow |")
    assert "| gflow | 0.900 (1) | 0.600 (2) | 1.5 |" in text
    assert "| gflow | 1 | 12.5 | 33 |" in text
    assert "out of memory" in text
    assert "A first look." in text
    assert text.index("**count**") < text.index("**or**")  # where we are not first comes first
