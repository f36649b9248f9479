"""What an explanation says, as plain values, and when it is computed."""

import json
import pickle

from gflowexplainer.explanation.certificate import Certificate, PendingCertificate
from gflowexplainer.explanation.ranked_subgraphs import (
    RankedSubgraph,
    SubgraphDistribution,
    SubgraphPredictions,
    class_of,
    counted,
    shown,
)

SUBGRAPH = RankedSubgraph.of((4, 0, 1), 0.75, 0.9, (0.2, 0.8), (0.6, 0.4))


def distribution(**more):
    pending = PendingCertificate.computed(Certificate(0.2, 0.05, 12))
    return SubgraphDistribution(lambda: [SUBGRAPH], 4, 16, 0.03, pending, **more)


def test_there_and_back_through_json():
    before = distribution(left_out=7, prediction_kept=(0.1, 0.9))
    after = SubgraphDistribution.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after.to_dict() == before.to_dict()
    assert after.subgraphs == (SUBGRAPH,)
    assert after.subgraphs[0].prediction_only == (0.2, 0.8)
    assert after.prediction_kept == (0.1, 0.9)
    assert after.certificate.get() == Certificate(0.2, 0.05, 12)


def test_distributions_of_before_the_bound_are_read():
    stored = distribution().to_dict()
    del stored["left_out"], stored["prediction_kept"]
    assert SubgraphDistribution.from_dict(stored).left_out == 0


def test_words():
    assert distribution().bound_note() == ""
    assert distribution(left_out=7).bound_note().startswith("At least 7 nodes")
    assert distribution(left_out=7, prediction_kept=(0.1, 0.9)).bound_note().endswith("the model says class 1 (0.90)")
    assert (shown((0.1, 0.9)), shown((0.5,))) == ("class 1 (0.90)", "0.500")
    assert (class_of((0.1, 0.9)), class_of((3.0,))) == (1, None)
    assert (SUBGRAPH.class_only, SUBGRAPH.class_without) == (1, 0)


def test_predictions_of_all_subgraphs_are_computed_once_and_only_if_one_is_looked_at():
    calls = []

    def compute(without):
        calls.append(without)
        return [[0.1, 0.9], [0.7, 0.3]] if without else [[0.4, 0.6], [0.5, 0.5]]

    block = SubgraphPredictions(compute)
    first, second = (RankedSubgraph((row,), 0.5, 1.0, block, row) for row in range(2))
    assert (first != second, len(first), calls) == (True, 1, [])
    assert second.prediction_only == (0.5, 0.5)
    assert calls == [False]
    assert (first.prediction_only, first.prediction_without, second.class_without) == ((0.4, 0.6), (0.1, 0.9), 0)
    assert calls == [False, True]


def test_what_travels_is_computed_first():
    there = pickle.loads(pickle.dumps(distribution()))
    assert there.subgraphs == (SUBGRAPH,)
    assert there.subgraphs[0].to_dict() == SUBGRAPH.to_dict()


def test_numbers_of_things():
    said = [counted(0, "node"), counted(1, "node"), counted(2, "node"), counted(1, "process", "processes")]
    assert said == ["0 nodes", "1 node", "2 nodes", "1 process"]
    assert counted(2, "process", "processes") == "2 processes"
