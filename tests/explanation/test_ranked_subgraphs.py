"""What an explanation says, as plain values."""

import json

from gflowexplainer.explanation.certificate import Certificate, PendingCertificate
from gflowexplainer.explanation.ranked_subgraphs import Answer, RankedSubgraph, class_of, shown

SUBGRAPH = RankedSubgraph((4, 0, 1), 0.75, 0.9, (0.2, 0.8), (0.6, 0.4))


def answer(**more):
    pending = PendingCertificate.computed(Certificate(0.1, 0.2, 0.05, 12))
    return Answer((SUBGRAPH,), 4, "policy", 16, 12.5, pending, **more)


def test_there_and_back_through_json():
    before = answer(left_out=7, prediction_kept=(0.1, 0.9))
    after = Answer.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after.to_dict() == before.to_dict()
    assert after.subgraphs == (SUBGRAPH,)
    assert after.prediction_kept == (0.1, 0.9)
    assert after.certificate.get() == Certificate(0.1, 0.2, 0.05, 12)


def test_answers_of_before_the_bound_are_read():
    stored = answer().to_dict()
    del stored["left_out"], stored["prediction_kept"]
    assert Answer.from_dict(stored).left_out == 0


def test_words():
    assert answer().bound_note() == ""
    assert answer(left_out=7).bound_note().startswith("At least 7 nodes")
    assert answer(left_out=7, prediction_kept=(0.1, 0.9)).bound_note().endswith("the model says class 1 (0.90)")
    assert (shown((0.1, 0.9)), shown((0.5,))) == ("class 1 (0.90)", "0.500")
    assert (class_of((0.1, 0.9)), class_of((3.0,))) == (1, None)
