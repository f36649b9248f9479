"""Scores of other benchmarks, against PyG and by hand."""

import math

import pytest
import torch
from torch_geometric.explain.metric import characterization_score

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Scores, Subject, create
from gflowbench.metrics import measure
from gflowbench.metrics.fidelity import fidelity, robust_fidelity
from gflowbench.metrics.field_scores import characterization, explanation_accuracy, node_auc
from gflowbench.metrics.ground_truth import GroundTruth
from gflowexplainer.testing import GraphModel, house, path


@pytest.fixture
def graphs() -> Subject:
    benchmark = Benchmark.from_graphs([house(seed=1), path(6, seed=2)], task="graph", num_classes=2, index=[0, 1])
    return Subject.of(GraphModel(), benchmark)


def truth_of(*nodes: int) -> GroundTruth:
    mask = torch.zeros(11, dtype=torch.bool)
    mask[list(nodes)] = True
    none = torch.zeros(0, dtype=torch.bool)
    return GroundTruth(none, none, mask)


def test_jaccard_by_hand(graphs):
    explanation = torch.zeros(11, dtype=torch.bool)
    explanation[[0, 1, 2, 5]] = True
    # 2 of 4 nodes in the first graph; the second has no truth and does not count.
    assert explanation_accuracy(graphs.instances, explanation, truth_of(1, 2, 3)) == pytest.approx(2 / 4)
    # 2 of 4, and 1 of 2.
    assert explanation_accuracy(graphs.instances, explanation, truth_of(1, 2, 3, 5, 6)) == pytest.approx(
        (0.5 + 0.5) / 2
    )
    assert math.isnan(explanation_accuracy(graphs.instances, explanation, truth_of()))


@pytest.mark.parametrize(("plus", "minus"), [(0.3, 0.1), (1.0, 0.0), (0.05, 0.9), (0.7, 0.7)])
@pytest.mark.parametrize("weight", [0.5, 0.2])
def test_characterization_is_pygs(plus, minus, weight):
    wanted = characterization_score(torch.tensor(plus), torch.tensor(minus), weight, 1 - weight)
    assert characterization(plus, minus, weight) == pytest.approx(float(wanted), abs=1e-6)


def test_node_auc_leaves_the_explained_node_out(two_triangles, count_neighbors):
    subject = Subject.of(count_neighbors, two_triangles, [2], num_hops=2)
    ids = subject.instances.node_id
    score = torch.where(ids == 2, -9.0, (ids <= 1).double())
    truth = GroundTruth(torch.zeros(0).bool(), torch.zeros(0).bool(), ids <= 2)
    assert node_auc(subject.instances, Scores.of_nodes(subject.instances, score), truth) == 1.0


def test_values_have_fidelity_too():
    model = GraphModel(num_classes=1)
    benchmark = Benchmark.from_graphs([house(seed=1), path(6, seed=2)], task="graph", num_classes=2, index=[0, 1])
    subject = Subject.of(model, benchmark, mode="regression")
    everything = torch.ones(11, dtype=torch.bool)
    found = fidelity(subject, everything)
    assert found.minus == pytest.approx(0, abs=1e-6)
    assert found.unfaithfulness == pytest.approx(0, abs=1e-6)
    assert math.isnan(found.plus_label)
    some = everything.clone()
    some[[0, 1, 6]] = False
    kept = [subject.data[0].subgraph(some[:5]), subject.data[1].subgraph(some[5:])]
    with torch.no_grad():
        alone = torch.cat([model(graph.x, graph.edge_index) for graph in kept])[:, 0]
    whole = subject.target.prediction[:, 0]
    wanted = ((whole - alone).abs() / subject.target.scale).mean()
    assert fidelity(subject, some).minus == pytest.approx(float(wanted), abs=1e-5)
    assert robust_fidelity(subject, some, remove_share=1, keep_share=0, num_contexts=2)[1] == pytest.approx(
        float(wanted), abs=1e-5
    )
    values, _ = measure(subject, create("degree").explain(subject, 0), None, top_k=3)
    assert values["fidelity_plus"] >= 0
    assert math.isnan(values["gea"])
