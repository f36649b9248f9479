"""What is read of a model's layers, held against the layers called by hand."""

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer.errors import ModelError
from gflowexplainer.model.layer_outputs import observe
from gflowexplainer.testing import NodeModel, house


def test_embeddings_are_the_outputs_of_all_layers() -> None:
    graph, model = house(), NodeModel()
    with torch.no_grad():
        first = model.first(graph.x, graph.edge_index)
        second = model.second(first.relu(), graph.edge_index)
    ours = observe(model, graph.x, graph.edge_index)[1]
    torch.testing.assert_close(ours, torch.cat([first, second], dim=1))
    assert not ours.requires_grad
    weighted = observe(model, graph.x, graph.edge_index, {"edge_weight": torch.rand(12)})[1]
    assert not torch.allclose(weighted, ours)


def test_embeddings_leave_no_hooks_and_name_the_model_that_fails() -> None:
    model = NodeModel()
    with pytest.raises(ModelError, match="NodeModel failed on the whole graph: RuntimeError"):
        observe(model, torch.ones(5, 99), house().edge_index)
    observe(model, house().x, house().edge_index)
    assert not any(module._forward_hooks for module in model.modules())


class Layerless(nn.Module):
    """Says the same of every node."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x.new_zeros(x.size(0), 2)


def test_embeddings_of_a_model_without_layers_are_empty() -> None:
    assert observe(Layerless(), house().x, house().edge_index)[1].shape == (5, 0)
