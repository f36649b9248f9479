"""How evidence is learned and scored: the held-out score against scikit-learn, models that are known."""

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer.choices import EvidenceType
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards import calibration
from gflowexplainer.rewards.calibration import MEASURED_NODES, find_consensus, random_subgraphs
from gflowexplainer.rewards.candidates import Candidates
from gflowexplainer.rewards.evidence import Evidence, ridge_of
from gflowexplainer.rewards.fitting import CAUTION, WORTH, Description, Fitting
from gflowexplainer.rewards.least_squares import Regularization
from gflowexplainer.rewards.measuring import Measurements
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, random_graph


@pytest.mark.parametrize(
    ("classes", "pooling", "wanted"),
    [
        ([100, 100], 30.0, [30.0]),  # described by themselves for three quarters already
        ([12, 12], 30.0, [30.0, 4.0]),  # 12 / (12 + 4) is three quarters
        ([6, 0, 6, 6], 30.0, [30.0, 3.0, 2.0]),  # of classes that are there
        ([100, 100], 0.0, [0.0]),  # as the user says
    ],
)
def test_pooling_is_weakened_until_classes_describe_themselves_for_three_quarters(classes, pooling, wanted) -> None:
    label = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(classes))
    assert Candidates(pooling=pooling).poolings(label) == pytest.approx(wanted)


def test_weights_of_many_kinds_are_held_back_where_instances_are_few() -> None:
    x = torch.randn(60, 14, generator=torch.Generator().manual_seed(0)).split(10)
    graphs = [random_graph(10, 0.2, seed=seed, width=14) for seed in range(6)]
    for graph, features in zip(graphs, x, strict=True):
        graph.x = features
    inputs = TaskInputs.of(Predictor(SumOfHidden(), level="graph", num_hops=1), Instances.of_graphs(graphs))
    subgraphs = random_subgraphs(inputs.instances, Settings(), 8, Stream.measuring)
    evidence = Evidence.of(inputs.instances, inputs.instances.x, torch.eye(14, dtype=torch.double))
    rows, fold = evidence.describe(subgraphs), subgraphs.instance % 2
    generator = torch.Generator().manual_seed(1)
    found = Measurements(rows[:, 0] + 8 * torch.randn(len(rows), generator=generator).double(), 1.0)
    fitting = Fitting(inputs, subgraphs, fold)
    description = Description(torch.eye(14, dtype=torch.double), rows, ridge_of(evidence))
    told = fitting.held_out(description, found, [Regularization(caution=caution) for caution in CAUTION])
    assert told[0] + WORTH < told[2]  # noise is described only where it was fitted
    measured = {"keep_probability": 0.5, "removal": "induced"}
    tried = next(fitting.attempts(Candidates(), EvidenceType.shared, description, found, **measured))
    assert tried.trial.explained == max(told)
    wanted = fitting.weights(description, found, Regularization(caution=CAUTION[told.index(max(told))]))
    assert torch.equal(tried.weights, wanted)


class SumOfHidden(nn.Module):
    """The log-odds of a graph: the sum over its nodes of a feature, which only few nodes have."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        value = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x[:, 0])
        return torch.stack([torch.zeros_like(value), value], dim=1)


def test_a_model_that_adds_up_single_nodes_is_explained_by_their_losses() -> None:
    graphs = []
    for seed in range(8):
        graph = random_graph(14, 0.15, seed=seed, width=40)  # too wide for kinds
        graph.x[:, 0] = 0
        graph.x[seed % 7, 0], graph.x[8, 0] = 2.0, 1.0
        graphs.append(graph)
    inputs = TaskInputs.of(Predictor(SumOfHidden(), level="graph", num_hops=1), Instances.of_graphs(graphs))
    found = find_consensus(Settings(num_contexts=128), inputs)
    assert found.uses_own
    assert found.chosen.explained > 0.85


@pytest.mark.parametrize("bound", [2, 8, 30])
def test_nothing_that_is_measured_knows_the_bound(bound: int) -> None:
    instances = Instances.of_graphs([random_graph(25, 0.15, seed=seed) for seed in range(3)])
    inputs = TaskInputs.of(Predictor(GraphModel(seed=1), level="graph"), instances)
    settings = Settings(max_nodes=bound)
    subgraphs = random_subgraphs(instances, settings, 4, Stream.measuring)
    assert subgraphs.members.size(1) == MEASURED_NODES
    found, usual = find_consensus(settings, inputs), find_consensus(Settings(), inputs)
    assert found.trials == usual.trials
    assert torch.equal(found.weight, usual.weight)


@pytest.mark.parametrize(("most", "little", "wanted"), [(2048, True, 2), (2048, False, 1), (256, True, 1)])
def test_more_is_measured_where_asking_is_dear_and_little_was_said(monkeypatch, most, little, wanted) -> None:
    monkeypatch.setattr(calibration, "_MEASURED", (256, most))
    monkeypatch.setattr(calibration, "_WORK", 1)
    monkeypatch.setattr(calibration, "says_little", lambda chosen: little)
    inputs = TaskInputs.of(
        Predictor(GraphModel(seed=1), level="graph"),
        Instances.of_graphs([random_graph(10, 0.3, seed=seed) for seed in range(16)]),
    )
    grown = []
    grow = calibration.random_subgraphs
    monkeypatch.setattr(calibration, "random_subgraphs", lambda *how: grown.append(how[2]) or grow(*how))
    find_consensus(Settings(num_contexts=2), inputs)
    assert grown == [8, 16][:wanted]
