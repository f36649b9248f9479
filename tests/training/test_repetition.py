"""Work that is repeated is done as often as asked, and tells its first and its last number."""

import pytest
import torch

from gflowexplainer.training.repetition import repeat

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("times", [1, 2, 7])
def test_work_is_done_so_many_times(device, same, times):
    place = torch.device(device)
    weight = torch.ones(3, device=place)

    def double():
        weight.mul_(2)
        return weight.sum()

    first, last = repeat(double, times, place, same=same)
    assert float(first) == 6
    assert float(last) == 3 * 2**times
    assert weight.tolist() == [2.0**times] * 3


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_and_an_optimizer_are_repeated_too(device):
    place = torch.device(device)
    weight = torch.ones(3, device=place, requires_grad=True)
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True, capturable=device == "cuda")

    def descend():
        optimizer.zero_grad(set_to_none=True)
        loss = weight.square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    first, last = repeat(descend, 8, place, same=True)
    assert float(first) == 3
    alone = torch.ones(3, requires_grad=True)
    other = torch.optim.AdamW([alone], lr=0.1, fused=True)
    for _ in range(8):
        other.zero_grad(set_to_none=True)
        loss = alone.square().sum()
        loss.backward()
        other.step()
    torch.testing.assert_close(weight.detach().cpu(), alone.detach())
    torch.testing.assert_close(last.cpu(), loss.detach())
