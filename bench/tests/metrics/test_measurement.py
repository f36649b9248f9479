import math

import pytest
import torch

from gflowbench.explainers import FLOORS, Scores, Subject, create
from gflowbench.metrics import METRICS, GroundTruth, MetricSettings, measure
from gflowbench.metrics.measurement import agreement
from gflowexplainer.errors import ConfigError

QUICK = MetricSettings(num_contexts=2)


@pytest.fixture(params=["triangle", "two_triangles", "molecules"])
def problem(request, count_neighbors, mean_degree):
    benchmark = request.getfixturevalue(request.param)
    model = mean_degree if benchmark.task == "graph" else count_neighbors
    subject = Subject.of(model, benchmark, num_hops=4)
    return subject, GroundTruth.of(benchmark, subject)


def test_a_perfect_explanation_scores_one_an_empty_one_half_a_reversed_one_zero(problem):
    subject, truth = problem
    perfect = Scores(truth.node.double(), truth.own.double())
    assert agreement(subject, perfect, truth)["auc_own"] == 1.0
    reversed_ = Scores(1 - perfect.node, 1 - perfect.edge)
    assert agreement(subject, reversed_, truth)["auc_own"] == 0.0
    empty = create("nothing").explain(subject, 0)
    for name, value in agreement(subject, empty, truth).items():
        assert name == "accuracy" or value == 0.5


def test_the_own_motif_is_not_all_motifs(two_triangles, count_neighbors):
    subject = Subject.of(count_neighbors, two_triangles, [1], num_hops=4)
    truth = GroundTruth.of(two_triangles, subject)
    values = agreement(subject, Scores(truth.node.double(), truth.own.double()), truth)
    # Of all six motif edges three are found; the two bridges tie with the other three: (3 + 3/2) / 6.
    assert (values["auc_own"], values["auc_all"]) == (1.0, pytest.approx(0.75))


def test_five_nodes_by_hand(triangle_subject, triangle):
    truth = GroundTruth.of(triangle, triangle_subject)
    score = {(0, 1): 0.9, (0, 2): 0.4, (1, 2): 0.6, (2, 3): 0.5, (3, 4): 0.1}
    source, target = triangle_subject.instances.edge_index.tolist()
    # Only one direction carries the score: the larger of the two counts.
    edge = torch.tensor([score[u, v] if u < v else 0.0 for u, v in zip(source, target, strict=True)])
    scores = Scores(torch.tensor([0.9, 0.8, 0.1, 0.7, 0.2]), edge)
    values, explanation = measure(triangle_subject, scores, truth, top_k=3, settings=QUICK)
    for name in ("auc_own", "auc_own_mean", "auc_all", "auc_all_mean"):
        assert values[name] == pytest.approx(5 / 6)
    assert values["accuracy"] == pytest.approx(2 / 3)
    assert explanation.tolist() == [True, True, False, True, False]
    assert values["size"] == 3
    assert values["sparsity"] == pytest.approx(2 / 5)
    assert values["connectivity"] == 0


@pytest.mark.parametrize("name", FLOORS)
def test_every_metric_of_every_floor_is_a_number(problem, name):
    subject, truth = problem
    scores = create(name).explain(subject, 0)
    values, explanation = measure(subject, scores, truth, top_k=3, settings=QUICK)
    assert list(values) == list(METRICS)
    assert not any(math.isnan(value) for value in values.values())
    assert explanation.shape == (subject.instances.num_nodes,)


def test_both_removals_are_the_same_at_a_node(triangle_subject, triangle):
    scores = create("distance").explain(triangle_subject, 0)
    values, _ = measure(triangle_subject, scores, None, top_k=2, settings=QUICK)
    for kind in ("plus", "minus", "plus_label", "minus_label"):
        assert values[f"fidelity_{kind}"] == values[f"fidelity_{kind}_isolate"]
    assert math.isnan(values["auc_own"])
    assert math.isnan(values["accuracy"])


def test_robust_fidelity_can_be_left_out(triangle_subject, triangle):
    scores = create("everything").explain(triangle_subject, 0)
    values, _ = measure(triangle_subject, scores, None, top_k=2, settings=MetricSettings(num_contexts=0))
    assert math.isnan(values["robust_fidelity_plus"])


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="'top_k'"):
        MetricSettings(top_k=0)
    with pytest.raises(ConfigError, match="'num_contexts'"):
        MetricSettings(num_contexts=-1)
