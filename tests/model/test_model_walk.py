"""A remembered walk over a model: what it finds again, and what it notices."""

import gc
import weakref

import pytest
import torch
from torch import nn

from gflowexplainer.model.model_walk import ModelWalk
from gflowexplainer.testing import NodeModel


def test_it_finds_every_tensor_by_a_name_of_its_own():
    model = NodeModel(seed=1)
    model.register_buffer("scale", torch.ones(1))
    model.register_buffer("nothing", None)
    model.first.extra = torch.zeros(2)
    found = ModelWalk(model).tensors(model)
    expected = [*model.parameters(), *model.buffers(), model.first.extra]
    assert found is not None
    assert {id(tensor) for tensor in found.values()} == {id(tensor) for tensor in expected}
    assert len(found) == len(expected)


def test_a_shared_module_is_met_once():
    layer = nn.Linear(2, 2)
    model = nn.ModuleList([layer, layer])
    found = ModelWalk(model).tensors(model)
    assert found is not None
    assert len(found) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model.second, "improved", True),
        lambda model: setattr(model.second, "improved", 0),
        lambda model: setattr(model, "depth", 2),
        lambda model: delattr(model, "depth"),
        lambda model: setattr(model, "second", nn.Linear(2, 2)),
        lambda model: setattr(model, "third", nn.Linear(2, 2)),
        lambda model: model.register_parameter("weight", None),
        lambda model: setattr(model.second, "bias", None),
        lambda model: model.register_buffer("scale", torch.ones(1)),
        lambda model: setattr(model, "scale", torch.ones(1)),
        lambda model: setattr(model.second, "__class__", nn.Identity),
    ],
)
def test_it_notices_other_modules_and_plain_values(change):
    model = NodeModel(seed=1)
    model.depth = 1
    walk = ModelWalk(model)
    assert walk.tensors(model) is not None
    change(model)
    assert walk.tensors(model) is None


def test_a_model_in_another_mode_is_the_same_and_an_equal_one_is_not():
    model = NodeModel(seed=1)
    walk = ModelWalk(model)
    assert walk.tensors(model.train()) is not None
    assert walk.tensors(model.eval()) is not None
    assert walk.tensors(NodeModel(seed=1)) is None


def test_it_keeps_no_model_alive():
    model = NodeModel(seed=1)
    walk, known = ModelWalk(model), weakref.ref(model)
    del model
    gc.collect()
    assert known() is None
    assert walk is not None


def test_a_scripted_model_is_walked_over():
    model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    found = ModelWalk(model).tensors(model)
    assert found is not None
    assert len(found) == len([*model.parameters(), *model.buffers()])
