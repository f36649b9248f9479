"""Wide features through the class: the same answer whether rows are copied or not."""

import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import NodeModel, random_graph

CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


def explained(data, model):
    explainer = GFlowExplainer(max_nodes=4, epochs=2, num_samples=8, num_contexts=2)
    return explainer.explain(model, data, [5], model_config=CONFIG, progress=False)[0]


def test_rows_that_are_not_copied_give_the_same_explanation(monkeypatch):
    data, model = random_graph(20, 0.15, 1), NodeModel()
    wanted = explained(data, model)
    # What the policy sees stays the same, so that only the way to the rows differs.
    monkeypatch.setattr("gflowexplainer.graphs.instances.WIDE", 2)
    found = explained(data, model)
    assert [s.nodes for s in found.subgraphs] == [s.nodes for s in wanted.subgraphs]
    torch.testing.assert_close(found.node_mask, wanted.node_mask)
    for one, other in zip(found.subgraphs, wanted.subgraphs, strict=True):
        assert one.prediction_only == other.prediction_only
        assert one.prediction_without == other.prediction_without
    assert found.counterfactual() == wanted.counterfactual()
    assert found.feature_contributions() == wanted.feature_contributions()
    assert found.warnings == wanted.warnings
