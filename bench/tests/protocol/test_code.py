"""What a cell is keyed by: the code that it comes from, and no other."""

from functools import partial

import pytest

from gflowbench.explainers import registry
from gflowbench.paper.table_datasets import count
from gflowbench.protocol import Contestant, Problem, ProtocolSettings
from gflowbench.protocol.cells import PendingCell, file_of
from gflowbench.protocol.code import EVERYWHERE, cell_code, code_of, reached, step_code
from gflowexplainer.report.provenance import code_digest

TRAINER = "gflowexplainer.training.trainer"


def code_reached(name):
    return reached(registry.module_of(name), *EVERYWHERE)


@pytest.mark.parametrize("name", registry.names("ours"))
def test_our_own_cells_come_from_the_engine(name):
    assert {TRAINER, "gflowexplainer.explainer", "gflowexplainer.settings"} <= code_reached(name)


@pytest.mark.parametrize("name", [*registry.names("peers"), *registry.names("floors")])
def test_peers_and_floors_do_not_come_from_our_training(name):
    found = code_reached(name)
    assert not {module for module in found if module.startswith("gflowexplainer.training")}
    assert {"gflowexplainer.graphs.instances", "gflowexplainer.model.predictor", "gflowbench.metrics.auc"} <= found


def test_what_names_explainers_by_text_comes_from_all_of_them():
    assert "gflowbench.explainers.subgraphx" in reached("gflowbench.explainers.registry")


def test_code_that_is_not_ours_may_use_all_of_ours():
    everything = code_digest("gflowbench", "gflowexplainer")
    assert cell_code("not registered") == step_code(lambda: 0) == step_code(partial(len)) == everything
    assert step_code(partial(partial(count, "x"), "y")) == code_of(count.__module__) != everything


def test_a_cell_is_named_by_its_code():
    task = PendingCell(Problem("d", "toy", lambda: None), Contestant.named("random"), 0)
    cell = task.blank(ProtocolSettings())
    assert cell.settings["code"] == cell_code("random")
    cell.settings["code"] = "another"
    assert file_of(cell) != file_of(task.blank(ProtocolSettings()))
