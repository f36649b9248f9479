"""A result that should not be trusted says so, with the numbers; one that can be says nothing."""

import pickle
from dataclasses import replace

import pytest

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.trust import doubts_about, scales
from gflowexplainer.testing import NodeModel, random_graph

QUICK = {"max_nodes": 4, "epochs": 3, "num_contexts": 4, "num_samples": 64}


@pytest.fixture(scope="module")
def sampled():
    found = GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(12), [3], progress=False)
    return found._batches[0]


@pytest.mark.parametrize(("error", "said"), [(0.0, False), (0.01, False), (0.43, True)])
def test_probabilities_that_are_off(sampled, error, said):
    doubts = doubts_about(sampled.sampler.reward, error, 0)
    assert any(f"off by {error:.2f} in total variation" in doubt for doubt in doubts) == said


@pytest.mark.parametrize(("share", "said"), [(0.01, True), (-0.5, True), (0.5, False)])
def test_evidence_that_explains_nothing(sampled, share, said):
    reward = sampled.sampler.reward
    before = reward.learned
    try:
        reward.learned = replace(before, explained=share)
        doubts = doubts_about(reward, 0.0, 0)
    finally:
        reward.learned = before
    assert any("hardly told apart" in doubt for doubt in doubts) == said


@pytest.mark.parametrize(("factor", "said"), [(1.0, False), (1e5, True)])
def test_features_on_different_scales(factor, said):
    data = random_graph(12)
    data.x[:, 1] *= factor
    instances = Instances.around_nodes(data.x, data.edge_index, [3], 2)
    found = scales(instances, 0)
    assert bool(found) == said
    assert not said or "Column 1" in found[0]


def test_warnings_are_stored_and_travel(tmp_path):
    data = random_graph(12)
    data.x[:, 1] *= 1e5
    explanation = GFlowExplainer(**QUICK).explain(NodeModel(), data, [3], progress=False)[0]
    assert any("Column 1" in said for said in explanation.warnings)
    explanation.save(tmp_path / "e.safetensors")
    assert SubgraphExplanation.load(tmp_path / "e.safetensors").warnings == explanation.warnings
    assert pickle.loads(pickle.dumps(explanation)).warnings == explanation.warnings
    assert "Column 1" in explanation._repr_html_()
