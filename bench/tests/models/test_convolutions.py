import pytest
import torch

from gflowbench.models.convolutions import CONVOLUTIONS


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_alone_is_the_layer_on_nodes_with_a_self_loop_only(name):
    torch.manual_seed(0)
    convolution = CONVOLUTIONS[name]
    layer = convolution.layer(5, 8)
    x, nodes = torch.randn(3, 5), torch.arange(3)
    torch.testing.assert_close(convolution.alone(layer, x), layer(x, torch.stack([nodes, nodes])))
