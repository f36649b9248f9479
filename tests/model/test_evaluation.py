"""A model in evaluation mode comes back exactly as it was, whatever it did in the meantime."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GCNConv, SGConv

from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.evaluation import evaluation_mode
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.rewards import PredictionReward
from gflowexplainer.testing import NodeModel, house


class Busy(nn.Module):
    """Does everything in ``forward`` that a model had better not do, and fails at its ``fails_at``-th call."""

    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        self.conv = GCNConv(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.readout = nn.Linear(4, 2)
        self.register_buffer("in_place", torch.zeros(2))
        self.register_buffer("replaced", torch.zeros(2))
        self.register_buffer("unset", None)
        self.register_buffer("fragile", torch.tensor([torch.nan, 1.0]), persistent=False)
        # Some parts in training mode, some not.
        self.train()
        self.norm.eval()
        self.fails_at, self.calls = fails_at, 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.calls += 1
        self.in_place += 1
        self.replaced = self.replaced + 1
        self.unset = torch.ones(1)
        self.fragile.zero_()
        if "added" not in self._buffers:
            self.register_buffer("added", torch.ones(1))
        self.norm.train()  # changes the running mean and variance
        noise = torch.rand(1) + np.random.rand() + random.random()
        hidden = self.norm(self.conv(x, edge_index).repeat(2, 1))[: x.size(0)]
        if self.calls == self.fails_at:
            raise ZeroDivisionError("on purpose")
        return self.readout(self.drop(hidden)) + 0 * noise


def portrait(model: nn.Module) -> dict[str, Any]:
    """Everything that must not change, in a form that can be compared."""

    def content(tensor: Tensor | None) -> Any:
        return None if tensor is None else (id(tensor), tensor.detach().numpy().tobytes(), tensor.requires_grad)

    return {
        "flags": {name: module.training for name, module in model.named_modules()},
        "parameters": {name: content(parameter) for name, parameter in model.named_parameters()},
        "buffers": {
            name: {key: content(buffer) for key, buffer in module._buffers.items()}
            for name, module in model.named_modules()
        },
        "states": list(model.state_dict()),
        "hooks": [
            [len(getattr(module, kind)) for kind in vars(module) if kind.endswith("_hooks")]
            for module in model.modules()
        ],
        "torch": torch.random.get_rng_state().tolist(),
        "numpy": str(np.random.get_state()),
        "python": random.getstate(),
        "gradients": torch.is_grad_enabled(),
    }


def call(model: nn.Module) -> None:
    graph = house()
    with evaluation_mode(model):
        assert not torch.is_grad_enabled()
        model(graph.x, graph.edge_index)


def call_nested(model: nn.Module) -> None:
    graph = house()
    with evaluation_mode(model):
        model(graph.x, graph.edge_index)
        middle = portrait(model)
        try:
            call(model)
        finally:
            assert portrait(model) == middle
        model(graph.x, graph.edge_index)


def call_embeddings(model: nn.Module) -> None:
    graph = house()
    Predictor(model).observe(graph.x, graph.edge_index, {}, 5)


def call_target(model: nn.Module) -> None:
    graph = house()
    Target.of(Predictor(model), Instances.around_nodes(graph.x, graph.edge_index, [0, 1], 1))


def call_reward(model: nn.Module) -> None:
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 2], 1)
    reward = PredictionReward(Predictor(model), instances)
    reward.log_score(Subgraphs(torch.tensor([0, 1]), torch.tensor([[0, 1], [4, 5]])))


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("fails_at", [None, 1, 2])
@pytest.mark.parametrize("use", [call, call_nested, call_embeddings, call_target, call_reward])
def test_model_comes_back_as_it_was(use: Callable[[nn.Module], None], fails_at: int | None, gradients: bool) -> None:
    model = Busy(fails_at)
    model.conv.register_forward_hook(lambda *_: None)
    with torch.set_grad_enabled(gradients):
        before = portrait(model)
        with suppress(ZeroDivisionError, ModelError):
            use(model)
        assert model.calls > 0
        assert portrait(model) == before


@pytest.mark.parametrize("use", [call, call_nested])
def test_exceptions_of_the_block_pass_through(use: Callable[[nn.Module], None]) -> None:
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        use(Busy(fails_at=1))


def test_every_module_is_in_evaluation_mode_inside() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2)))
    with evaluation_mode(model) as same:
        assert same is model
        assert not any(module.training for module in model.modules())
    assert all(module.training for module in model.modules())


def test_backward_still_works_afterwards() -> None:
    graph, model = house(), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    loss = model(graph.x).square().sum()
    with evaluation_mode(model):
        model(graph.x)
    loss.backward()
    assert model[0].weight.grad is not None


class Remembering(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.readout = layer, nn.Linear(3, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.readout(self.layer(x, edge_index))


@pytest.mark.parametrize(
    "make",
    [
        lambda cached: GCNConv(3, 3, cached=cached),
        lambda cached: APPNP(2, 0.1, cached=cached),
        lambda cached: SGConv(3, 3, K=2, cached=cached),
    ],
)
def test_layers_that_remember_a_graph_look_at_the_one_they_get(make: Callable[[bool], nn.Module]) -> None:
    graph = house()
    remembering, plain = Remembering(make(True)).eval(), Remembering(make(False)).eval()
    plain.load_state_dict(remembering.state_dict())
    whole = remembering(graph.x, graph.edge_index)
    less = graph.edge_index[:, :2]
    with evaluation_mode(remembering):
        torch.testing.assert_close(remembering(graph.x, less), plain(graph.x, less))
        torch.testing.assert_close(remembering(graph.x, graph.edge_index), whole)
    torch.testing.assert_close(remembering(graph.x, less), whole)  # it remembers again
    assert remembering.layer.cached


def test_embeddings_are_the_outputs_of_all_layers_and_leave_no_hooks() -> None:
    graph, model = house(), NodeModel()
    predictor = Predictor(model)
    with torch.no_grad():
        first = model.first(graph.x, graph.edge_index)
        second = model.second(first.relu(), graph.edge_index)
    ours = predictor.observe(graph.x, graph.edge_index, {}, 5)[1]
    torch.testing.assert_close(ours, torch.cat([first, second], dim=1))
    assert not ours.requires_grad
    weighted = predictor.observe(graph.x, graph.edge_index, {"edge_weight": torch.rand(12)}, 5)[1]
    assert not torch.allclose(weighted, ours)
    with pytest.raises(ModelError, match=r"NodeModel failed when called with .* on the whole graph: RuntimeError"):
        predictor.observe(torch.ones(5, 99), graph.edge_index, {}, 5)
    assert not any(module._forward_hooks for module in model.modules())


class Layerless(nn.Module):
    """Says the same of every node."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x.new_zeros(x.size(0), 2)


def test_embeddings_of_a_model_without_layers_are_empty() -> None:
    assert Predictor(Layerless(), num_hops=1).observe(house().x, house().edge_index, {}, 5)[1].shape == (5, 0)


def test_hooks_of_the_user_see_the_calls() -> None:
    model, seen = NodeModel(), []
    model.first.register_forward_hook(lambda *_: seen.append(1))
    call(model)
    assert seen == [1]
