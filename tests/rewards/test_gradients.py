"""What gradients say of nodes: against what is known by hand, and the axiom that contributions add up."""

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards import measuring
from gflowexplainer.rewards.calibration import random_subgraphs
from gflowexplainer.rewards.gradients import integrated_gradients
from gflowexplainer.rewards.measuring import measure_gradients
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, random_graph

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class Linear(nn.Module):
    """The log-odds of a graph are a weighted sum over the features of its nodes."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(scale * torch.tensor([1.0, -2.0, 0.5]))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        value = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x @ self.weight)
        return torch.stack([torch.zeros_like(value), value], dim=1)


class Closed(Linear):
    """The same, cut off from gradients."""

    @torch.no_grad()
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return super().forward(x, edge_index, batch)


def inputs_of(model: nn.Module, number: int = 3, **settings) -> TaskInputs:
    graphs = [random_graph(9, 0.3, seed=seed) for seed in range(number)]
    return TaskInputs.of(Predictor(model, level="graph", num_hops=1, **settings), Instances.of_graphs(graphs))


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_what_a_linear_model_adds_up_is_what_its_nodes_have(scale) -> None:
    model = Linear(scale).train()
    inputs = inputs_of(model)
    x, sign = inputs.instances.x.double(), 2 * inputs.target.label - 1
    wanted = (x - x.mean(dim=0)) @ model.weight.detach().double() * sign[inputs.instances.owner]
    found = integrated_gradients(inputs)
    assert found is not None
    assert torch.allclose(found, wanted, atol=1e-5 * scale)
    assert model.weight.grad is None
    assert model.training


@pytest.mark.parametrize("budget", [1 << 18, 256 << 20])
def test_contributions_add_up_to_what_the_features_change(budget) -> None:
    inputs = inputs_of(GraphModel(seed=3), memory_budget=budget)
    found, instances = integrated_gradients(inputs), inputs.instances
    assert found is not None
    dull = instances.x.mean(dim=0).expand_as(instances.x)
    every, kept = torch.arange(3), torch.ones(instances.num_nodes, dtype=torch.bool)
    odds = []
    for x in (instances.x, dull):
        said = inputs.predictor.predict(Instances.of_graphs(_graphs_with(instances, x)), every, kept)
        odds.append(said.double().gather(1, inputs.target.label[:, None])[:, 0].logit())
    assert torch.allclose(found.view(3, 9).sum(dim=1), odds[0] - odds[1], atol=0.02)


class Relayed(nn.Module):
    """The value of a node is what those two steps away have, by the sum over all ways."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for _ in range(2):
            x = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return x @ torch.tensor([[1.0], [-2.0], [0.5]])


@pytest.mark.parametrize("one_by_one", [True, False])
def test_the_value_of_a_node_is_led_back_over_the_ways_to_it(one_by_one) -> None:
    graph = random_graph(30, 0.05, seed=1)
    predictor = Predictor(Relayed(), level="node", mode="regression", num_hops=2)
    centers = torch.tensor([3, 17, 20])
    instances = Instances.around_nodes(graph.x, graph.edge_index, centers.tolist(), 2)
    if one_by_one:
        predictor.memory_budget = 4 * int(predictor.cost(instances).max())
    baseline = torch.tensor([0.2, -0.1, 0.0])
    found = integrated_gradients(TaskInputs.of(predictor, instances), baseline)
    assert found is not None
    step = torch.zeros(30, 30, dtype=torch.double)
    step[graph.edge_index[1], graph.edge_index[0]] = 1
    value = (graph.x - baseline).double() @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.double)
    wanted = (step @ step)[centers[instances.owner], instances.node_id] * value[instances.node_id]
    assert torch.allclose(found, wanted, atol=1e-5)


def _graphs_with(instances: Instances, x: Tensor) -> list:
    graphs = [random_graph(9, 0.3, seed=seed) for seed in range(3)]
    for graph, rows in zip(graphs, x.view(3, 9, -1), strict=True):
        graph.x = rows
    return graphs


def test_where_there_is_no_gradient_nothing_is_said() -> None:
    assert integrated_gradients(inputs_of(Closed())) is None
    inputs = inputs_of(Linear())
    inputs.instances.x.fill_(1.0)
    assert integrated_gradients(inputs) is None


def test_instances_that_are_too_large_for_the_memory_are_not_asked() -> None:
    assert integrated_gradients(inputs_of(Linear(), memory_budget=1 << 10)) is None


def test_gradients_of_some_graphs_are_measured_in_their_subgraphs_only(monkeypatch) -> None:
    monkeypatch.setattr(measuring, "MOST_ASKED", 2)
    inputs = inputs_of(Linear(), number=5)
    subgraphs = random_subgraphs(inputs.instances, Settings(), 4, Stream.measuring)
    found, whole = measure_gradients(inputs, subgraphs, seed=0), integrated_gradients(inputs)
    assert found is not None
    assert whole is not None
    assert torch.unique(subgraphs.instance[found.rows]).numel() == 2
    # The mean of the features is that of the graphs that were asked.
    some = torch.unique(subgraphs.instance[found.rows])
    added = torch.zeros(inputs.instances.num_nodes, dtype=torch.double)
    nodes = torch.isin(inputs.instances.owner, some)
    added[nodes] = integrated_gradients(inputs.select(some))
    sums = [added[[m for m in members if m >= 0]].sum() for members in subgraphs.members[found.rows].tolist()]
    assert torch.allclose(found.value, torch.stack(sums))


@pytest.mark.parametrize(
    ("settings", "mode", "tried"),
    [
        ({}, "multiclass_classification", True),
        ({"keep_probability": 0.5}, "multiclass_classification", False),
        ({"removal": "induced"}, "multiclass_classification", False),
        ({"evidence": "own"}, "multiclass_classification", False),
        ({}, "regression", False),
    ],
)
def test_gradients_are_tried_where_nothing_else_is_asked_for(settings, mode, tried, tmp_path) -> None:
    graphs = [random_graph(9, 0.3, seed=seed) for seed in range(6)]
    model = GraphModel(seed=3, num_classes=1 if mode == "regression" else 2)
    explainer = GFlowExplainer(max_nodes=4, epochs=1, max_updates=1, num_contexts=4, hidden=8, **settings)
    explainer.fit(model, graphs, model_config=CONFIG | {"mode": mode}, progress=False)
    report = explainer.evidence_report()
    assert any(trial.by_gradients for trial in report.trials) == tried
    assert ("gradient" in str(report)) == tried
    explainer.save(tmp_path)
    assert GFlowExplainer.load(tmp_path).evidence_report() == report
