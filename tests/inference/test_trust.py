"""Certificates against targets worked out by hand; a result that should not be trusted says so, with the numbers."""

import math
import pickle
from dataclasses import replace

import pytest
import torch

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.trust import doubts_about, scales
from gflowexplainer.testing import GraphModel, NodeModel, path, random_graph

QUICK = {"max_nodes": 3, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 32}
FEW = {"max_nodes": 4, "epochs": 3, "num_contexts": 4, "num_samples": 64}


def target_by_hand(model, graph, node, sets, beta, measure):
    """The target over given node sets, which count as ``measure`` says, with the paper's reward."""
    whole = model(graph.x, graph.edge_index)[node].softmax(0)
    rewards = []
    for nodes in sets:
        inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
        inside[list(nodes)] = True
        kept = graph.subgraph(inside)
        place = sorted(nodes).index(node)
        alone = model(kept.x, kept.edge_index)[place].softmax(0)
        rewards.append(math.exp(beta * float((whole * alone.log()).sum())))
    weights = [r * m for r, m in zip(rewards, measure, strict=True)]
    return {frozenset(s): w / sum(weights) for s, w in zip(sets, weights, strict=True)}


@torch.no_grad()
@pytest.mark.parametrize("num_samples", [32, 3])
@pytest.mark.parametrize(
    ("measure", "counts"), [("uniform", [1, 1, 1, 1, 1]), ("growth", [1, 1 / 2, 1 / 2, 3 / 4, 1 / 4])]
)
def test_distances_against_a_path_worked_out_by_hand(num_samples, measure, counts):
    graph, model = path(4), NodeModel(seed=4)
    sets = [(1,), (0, 1), (1, 2), (0, 1, 2), (1, 2, 3)]
    wanted = target_by_hand(model, graph, 1, sets, 2.0, counts)
    quick = {**QUICK, "num_samples": num_samples, "measure": measure}
    algorithm = GFlowExplainer(**quick, reward="prediction", beta=2.0, min_nodes=1)
    explanation = algorithm.explain(model, graph, 1)[0]
    shown = {frozenset(s.nodes): s.probability for s in explanation.subgraphs}
    assert set(shown) <= set(wanted)
    certificate = explanation.certificate
    assert certificate.num_subgraphs == 5
    by_hand = 0.5 * sum(abs(shown.get(s, 0.0) - p) for s, p in wanted.items())
    assert certificate.distance == pytest.approx(by_hand, abs=1e-4)
    exact = [sum(p for s, p in wanted.items() if node in s) for node in range(4)]
    off = max(abs(float(explanation.node_mask[node]) - exact[node]) for node in range(4))
    assert certificate.node_error == pytest.approx(off, abs=1e-4)
    assert "over all 5 connected subgraphs" in str(certificate)


def test_what_dropped_nothing_is_exact_and_what_did_is_about_as_far_off_as_it_says():
    graph, model = random_graph(14, 0.3, seed=1), NodeModel(seed=4)
    wide, narrow = (
        GFlowExplainer(max_nodes=5, num_samples=number, beta=0.5).explain(model, graph, 1, progress=False)[0]
        for number in (4096, 4)
    )
    assert wide.error == 0
    assert wide.certificate.distance == pytest.approx(0, abs=1e-9)
    assert wide.certificate.node_error == pytest.approx(0, abs=1e-9)
    assert narrow.error > 0.05
    assert narrow.certificate.distance < 4 * narrow.error


def test_of_an_instance_in_the_middle_of_a_batch():
    graphs, model = [random_graph(7, 0.2, seed=seed) for seed in range(4)], GraphModel()
    algorithm = GFlowExplainer(**QUICK).fit(model, graphs[:2], progress=False)
    alone = algorithm.explain(model, graphs[2])[0].certificate
    among = algorithm.explain(model, graphs)[2].certificate
    for name, value in alone.to_dict().items():
        assert among.to_dict()[name] == (None if value is None else pytest.approx(value, abs=1e-4))


def test_nothing_is_no_subgraph_of_a_graph():
    # Of a path of four nodes: four single nodes, three pairs, two triples.
    algorithm = GFlowExplainer(**QUICK)
    assert algorithm.explain(GraphModel(), path(4))[0].certificate.num_subgraphs == 9


def test_too_many_subgraphs():
    graph, model = random_graph(12, 0.3, seed=1), NodeModel()
    certificate = GFlowExplainer(**QUICK, certificate_limit=5).explain(model, graph, 1)[0].certificate
    assert certificate.distance is None
    assert "more than 5 connected subgraphs" in certificate.reason
    assert str(certificate).startswith("not computed")


def test_a_model_that_changed_is_noticed():
    graph, model = random_graph(8, 0.2, seed=1), NodeModel()
    explanation = GFlowExplainer(**QUICK).explain(model, graph, 1)[0]
    with torch.no_grad():
        next(model.parameters()).add_(1)
    assert "after it was explained" in explanation.certificate.reason


@pytest.fixture(scope="module")
def sampled():
    found = GFlowExplainer(**FEW).explain(NodeModel(), random_graph(12), [3], progress=False)
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
        shared = tuple(replace(one, explained=share) for one in before.shared)
        reward.learned = replace(before, shared=shared)
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
    explanation = GFlowExplainer(**FEW).explain(NodeModel(), data, [3], progress=False)[0]
    assert any("Column 1" in said for said in explanation.warnings)
    explanation.save(tmp_path / "e.safetensors")
    assert SubgraphExplanation.load(tmp_path / "e.safetensors").warnings == explanation.warnings
    assert pickle.loads(pickle.dumps(explanation)).warnings == explanation.warnings
    assert "Column 1" in explanation._repr_html_()
