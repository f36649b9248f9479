import torch

from gflowbench.models import Architecture, build
from gflowbench.models.initialization import centre
from gflowexplainer.testing import star


def test_centred_layers_tell_nodes_of_constant_features_apart():
    torch.manual_seed(0)
    x, edges = torch.full((6, 10), 0.1), star(5).edge_index
    model = build(Architecture(model="gcn", task="graph", in_channels=10, num_classes=2))
    leaf, hub = model.layers(x, edges)[0][[1, 0]]
    torch.testing.assert_close(leaf, hub)
    centre(model, x, edges)
    leaf, hub = model.layers(x, edges)[0][[1, 0]]
    assert (leaf - hub).norm() > 0.1


def test_bias_is_the_spread_times_noise_minus_the_mean():
    x, edges = torch.randn(6, 3), star(5).edge_index
    model = build(Architecture(model="gcn", task="node", in_channels=3, num_classes=2))
    output = model.conv1(x, edges).detach()
    torch.manual_seed(3)
    centre(model, x, edges)
    torch.manual_seed(3)
    expected = output.std(dim=0) * torch.randn(20) - output.mean(dim=0)
    torch.testing.assert_close(model.conv1.bias.detach(), expected)
