"""When tensors are what they were."""

import weakref

import pytest
import torch

from gflowexplainer.model.tensor_mark import TensorMark


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.add_(1),
        lambda t: t.data.mul_(2),
        lambda t: setattr(t, "data", t.data + 1),
        lambda t: t.index_fill_(0, torch.tensor([0]), 9.0),
    ],
)
def test_a_written_tensor_is_another(change):
    tensor = torch.arange(12.0).reshape(4, 3)
    mark = TensorMark({"x": tensor})
    assert mark.fits({"x": tensor})
    change(tensor)
    assert not mark.fits({"x": tensor})


def test_an_equal_tensor_is_another_and_so_is_another_name():
    tensor = torch.ones(3)
    mark = TensorMark({"x": tensor})
    assert not mark.fits({"x": tensor.clone()})
    assert not mark.fits({"y": tensor})
    assert not mark.fits({})
    with torch.inference_mode():
        uncounted = torch.ones(3)
    assert not TensorMark({"x": uncounted}).fits({"x": uncounted})


@pytest.mark.parametrize("kind", [torch.float, torch.half])
def test_a_tensor_that_is_gone_holds_no_memory(kind):
    tensor, other = torch.ones(1000, dtype=kind), torch.ones(3)
    mark = TensorMark({"x": tensor, "y": other})
    seen = weakref.ref(mark._seen["x"].entries)
    assert mark.fits({"x": tensor, "y": other})
    del tensor
    assert seen() is None
    assert not mark.fits({"x": torch.ones(1000, dtype=kind), "y": other})
