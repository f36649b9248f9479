import pytest

from gflowbench.explainers import Scores, Subject, create
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.measurement import agreement


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
