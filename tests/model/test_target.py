"""What is to be held, worked out by hand."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv, global_add_pool

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import TINY, Target
from gflowexplainer.testing import GraphModel, NodeModel, house, path, star


class NeighborSum(nn.Module):
    """Regresses a node's first feature plus those of its neighbours; a graph's: the sum over its nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SimpleConv(aggr="sum", combine_root="sum")

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        value = self.conv(x, edge_index)[:, :1]
        return value if batch is None else global_add_pool(value, batch)


@pytest.fixture
def nodes() -> Instances:
    graph = house()
    return Instances.around_nodes(graph.x, graph.edge_index, range(5), 5)


@pytest.fixture
def sums() -> Instances:
    """Path 0 - 1 - 2 with features 1, 2 and 4: the sums are 3, 7 and 6."""
    graph = path(3)
    graph.x = torch.tensor([[1.0], [2.0], [4.0]])
    return Instances.around_nodes(graph.x, graph.edge_index, range(3), 1)


def test_predicted_class_is_held(nodes: Instances) -> None:
    graph, model = house(), NodeModel()
    target = Target.of(Predictor(model), nodes)
    with torch.no_grad():
        wanted = model(graph.x, graph.edge_index).softmax(dim=1)
    torch.testing.assert_close(target.prediction, wanted)
    assert target.label is not None
    assert target.label.equal(wanted.argmax(dim=1))
    assert not target.prediction.requires_grad


def test_class_of_the_users_choice_is_held(nodes: Instances) -> None:
    label = torch.tensor([2, 0, 1, 2, 2])
    target = Target.of(Predictor(NodeModel()), nodes, label)
    assert target.label is not None
    assert target.label.equal(label)
    prediction = torch.tensor([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    ours = target.log_preservation(prediction, torch.tensor([0, 1]))
    torch.testing.assert_close(ours, torch.tensor([0.5, TINY]).log())


def test_binary_classes_are_two() -> None:
    instances = Instances.of_graphs([house(), star()])
    predictor = Predictor(GraphModel(num_classes=1), level="graph", mode="binary_classification")
    target = Target.of(predictor, instances)
    assert target.prediction.shape == (2, 2)
    torch.testing.assert_close(target.prediction.sum(dim=1), torch.ones(2))


def test_values_are_held_in_units_of_what_the_neighbors_add(sums: Instances) -> None:
    target = Target.of(Predictor(NeighborSum(), mode="regression"), sums)
    assert target.label is None
    assert target.prediction.tolist() == [[3.0], [7.0], [6.0]]
    assert target.scale.tolist() == [2.0, 5.0, 2.0]
    # Off by nothing, by one unit, by two.
    ours = target.log_preservation(torch.tensor([[3.0], [2.0], [10.0]]), torch.tensor([0, 1, 2]))
    assert ours.tolist() == [0.0, -0.5, -2.0]


def test_values_of_graphs_are_held_in_units_of_what_the_edges_add() -> None:
    graph = path(3)
    graph.x = torch.tensor([[1.0], [2.0], [4.0]])
    target = Target.of(Predictor(NeighborSum(), level="graph", mode="regression"), Instances.of_graphs([graph]))
    assert target.prediction.tolist() == [[16.0]]
    assert target.scale.tolist() == [9.0]


def test_value_of_the_users_choice_is_held(sums: Instances) -> None:
    target = Target.of(Predictor(NeighborSum(), mode="regression"), sums, torch.tensor([1, 2, 3]))
    assert target.prediction.tolist() == [[1.0], [2.0], [3.0]]
    assert target.scale.tolist() == [2.0, 5.0, 2.0]


def test_value_that_nothing_changes_has_a_unit_all_the_same() -> None:
    lonely = Instances.around_nodes(torch.ones(1, 1), torch.empty(2, 0, dtype=torch.long), [0], 1)
    target = Target.of(Predictor(NeighborSum(), mode="regression"), lonely)
    assert target.scale.item() > 0
    assert target.log_preservation(torch.ones(1, 1), torch.tensor([0])).item() == 0


def test_memory_budget_changes_nothing(sums: Instances) -> None:
    small = Target.of(Predictor(NeighborSum(), mode="regression", memory_budget=1), sums)
    assert small.scale.tolist() == [2.0, 5.0, 2.0]


@pytest.mark.parametrize(
    ("label", "mode", "message"),
    [
        ([0, 1], "multiclass_classification", "There are 5 instances but 2 targets. Pass one each."),
        (
            [0, 1, 2, 3, 0],
            "multiclass_classification",
            "names class 3, but the model knows 3 classes. Pass classes in [0, 3).",
        ),
        ([0, -1, 2, 2, 0], "multiclass_classification", "names class -1, but the model knows 3 classes."),
        ([0.5, 0.5], "regression", "The model returned 5 values but there are 2 targets."),
        ([torch.nan] * 5, "regression", "The targets hold NaN or infinity. Pass finite values."),
    ],
)
def test_targets_that_make_no_sense(nodes: Instances, label: list[Any], mode: str, message: str) -> None:
    model = NodeModel(num_classes=1 if mode == "regression" else 3)
    with pytest.raises(InstanceError, match=re.escape(message)):
        Target.of(Predictor(model, mode=mode), nodes, torch.tensor(label))


def test_strength_is_the_log_odds_of_the_class_or_the_value(nodes: Instances, sums: Instances) -> None:
    held, first = torch.tensor([0.1, 0.25, 0.5, 0.9], dtype=torch.double), torch.zeros(4, dtype=torch.long)
    target = Target.of(Predictor(NodeModel()), nodes, torch.zeros(len(nodes), dtype=torch.long))
    odds = target.strength(torch.stack([held, 1 - held, 0 * held], dim=1).log(), first)
    assert odds.tolist() == pytest.approx([-math.log(9), -math.log(3), 0, math.log(9)])
    sure = torch.tensor([[80.0, 0, 0], [800.0, 0, 0]], dtype=torch.double).log_softmax(dim=1)
    assert target.strength(sure, first[:2]).tolist() == pytest.approx([80 - math.log(2), 800 - math.log(2)])
    value = Target.of(Predictor(NeighborSum(), mode="regression"), sums)
    assert value.strength(held[:, None], first).tolist() == pytest.approx(held.tolist())
