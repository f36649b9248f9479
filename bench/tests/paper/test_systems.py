import pytest

from gflowbench.explainers.registry import names
from gflowbench.metrics.measurement import MetricSettings
from gflowbench.paper import Scope
from gflowbench.paper.systems import SYSTEMS, here, left_out, missing, shared_contests, short
from gflowbench.protocol import printed_numbers
from gflowbench.protocol.cells import Bench, Contestant, PendingCell, ProtocolSettings
from gflowbench.protocol.plan import suite
from gflowbench.protocol.printed_numbers import DATASETS


def test_every_system_of_the_paper_is_an_explainer_here():
    assert set(SYSTEMS.values()) <= set(names())
    assert {*printed_numbers.AUC, *printed_numbers.ACCURACY, *printed_numbers.INFERENCE_MILLISECONDS} == set(SYSTEMS)


def test_the_cells_are_those_of_evaluate(tmp_path):
    """The files that ``evaluate --suite paper --contexts 10`` would write are the ones that are looked for."""
    scope = Scope()
    (contest,) = shared_contests(scope, ["subgraphx"], ["ba-shapes"], 10)
    part = suite("subgraphx", "ba-shapes")
    task = PendingCell(
        scope.problem("ba-shapes"), Contestant.named("subgraphx").beginning_with(part.settings), 0, part.every
    )
    wanted = Bench(tmp_path, ProtocolSettings(metrics=MetricSettings(num_contexts=10))).path(task)
    (contestant,) = contest.contestants
    mine = PendingCell(contest.problem, contestant.beginning_with(part.settings), contest.seeds[0], part.every)
    assert Bench(tmp_path, contest.settings).path(mine) == wanted
    assert (contest.beside, list(contest.seeds), contest.thinning) == ("accuracy", list(range(10)), suite)


def test_what_cannot_be_run_is_not_planned():
    scope = Scope()
    assert "gat" in left_out(scope, "attention", "tree-cycles")
    assert [c.name for c in shared_contests(scope, ["random", "attention"], ["ba-shapes", "tree-cycles"], 1)] == [
        "random on ba-shapes",
        "random on tree-cycles",
    ]


def test_slow_explainers_come_first():
    planned = [c.name for c in shared_contests(Scope(), ["random", "rg-explainer", "subgraphx"], ["tree-cycles"], 1)]
    assert planned == ["subgraphx on tree-cycles", "rg-explainer on tree-cycles", "random on tree-cycles"]


def test_files_that_are_not_there_are_left_out(no_reference):
    assert here(Scope()) == DATASETS[:5]
    assert missing(Scope()) == ["Mutagenicity is left out: its file is not there."]


@pytest.mark.parametrize("name", SYSTEMS.values())
def test_shortened_settings_are_settings_of_the_explainer(name):
    part = short(name, "ba-shapes")
    assert part.seeds == 1
    assert part.every >= 12
    Contestant.named(name, **part.settings)
