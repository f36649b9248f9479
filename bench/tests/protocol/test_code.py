"""What a cell is keyed by: the code that it comes from, and no other."""

from functools import partial

import pytest

from gflowbench.explainers import registry
from gflowbench.paper.table_datasets import count
from gflowbench.protocol import Contestant, Problem, ProtocolSettings
from gflowbench.protocol.cells import PendingCell, file_of
from gflowbench.protocol.code import EVERYWHERE, FRAME, cell_code, code_of, reached, step_code
from gflowexplainer.report.provenance import code_digest, source_path

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


def test_a_peer_that_uses_a_part_of_the_engine_comes_from_it():
    assert "gflowexplainer.flow.sampling" in code_reached("rg-explainer")
    assert "gflowexplainer.flow.sampling" in code_reached("random")
    assert "gflowexplainer.flow.sampling" not in code_reached("pgexplainer")


def test_what_is_reached_is_there_and_not_of_the_frame():
    for name in registry.names():
        for module in code_reached(name) - set(EVERYWHERE):
            assert source_path(module) is not None
            assert not module.startswith(FRAME)


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


def test_a_change_of_our_training_leaves_the_cells_of_peers_and_ceilings():
    changed = {name for name in registry.names() if TRAINER in code_reached(name)}
    assert changed == {*registry.names("ours")}
