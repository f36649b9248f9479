"""Evidence by features: what a node is, where what the model predicts there does not tell."""

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer import GFlowExplainer
from gflowexplainer.choices import EvidenceType
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.evidence import MAX_KINDS, raw_evidence, tells_by_features
from gflowexplainer.testing import GraphModel, NodeModel, random_graph


class NearColour(nn.Module):
    """Class 1: a neighbour has the first colour; the more of them, the surer."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        near = torch.zeros_like(x[:, :1]).index_add_(0, edge_index[1], x[edge_index[0], :1])
        return torch.cat([1 - 2 * near, 2 * near - 1], dim=1)


def coloured(seed: int, number: int = 80, columns: int = 3):
    graph = random_graph(number, 0.03, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    graph.x = torch.nn.functional.one_hot(torch.randint(columns, (number,), generator=generator), columns).float()
    return graph


def inputs_of(graph, level: str = "node") -> TaskInputs:
    if level == "graph":
        predictor = Predictor(GraphModel(in_channels=graph.x.size(1)), level="graph", num_hops=2)
        return TaskInputs.of(predictor, Instances.of_graphs([graph]))
    model = NodeModel(in_channels=graph.x.size(1))
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 5], 2)
    prediction = model(instances.x, instances.edge_index).softmax(dim=1).detach()
    return TaskInputs.of(Predictor(model, level="node", num_hops=2), instances, node_prediction=prediction)


def test_features_stand_before_what_is_predicted() -> None:
    inputs = inputs_of(coloured(0))
    plain, told = (raw_evidence(inputs, kind) for kind in (EvidenceType.shared, EvidenceType.features))
    torch.testing.assert_close(told, torch.cat([inputs.instances.x.double(), plain], dim=1))


def test_graphs_are_told_by_features_anyway() -> None:
    inputs = inputs_of(coloured(0), "graph")
    assert torch.equal(raw_evidence(inputs, EvidenceType.features), raw_evidence(inputs, EvidenceType.shared))
    assert not tells_by_features(inputs)


def test_features_that_are_many_or_all_the_same_tell_nothing() -> None:
    assert tells_by_features(inputs_of(coloured(0)))
    same = coloured(0)
    same.x = torch.ones_like(same.x)
    assert not tells_by_features(inputs_of(same))
    many = inputs_of(coloured(0, columns=MAX_KINDS + 1))
    assert not tells_by_features(many)
    with pytest.raises(ConfigError, match="at most 16 features, but there are 17"):
        raw_evidence(many, EvidenceType.features)


def test_a_model_that_looks_for_a_colour_is_described_by_colours(tmp_path) -> None:
    graph, model = coloured(1), NearColour()
    label = model(graph.x, graph.edge_index).argmax(dim=1)
    index = torch.nonzero(label == 1).flatten()[:12]
    explainer = GFlowExplainer(max_nodes=6, max_updates=3, num_hops=2, seed=0)
    explainer.fit(model, graph, index, progress=False)
    report = explainer.evidence_report()
    kinds = {kind: max(t.explained for t in report.trials if t.evidence == kind) for kind in ("shared", "features")}
    assert kinds["features"] > kinds["shared"] + 0.05
    assert report.chosen.evidence == "features"
    assert "the features of nodes" in str(report)
    explainer.save(tmp_path / "fitted")
    again = GFlowExplainer.load(tmp_path / "fitted")
    assert again.evidence_report().chosen == report.chosen
    ours, theirs = (each.explain(model, graph, index[:3], progress=False) for each in (explainer, again))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.node_mask, other.node_mask)
