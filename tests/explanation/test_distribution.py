"""What an explanation says, as plain values, and when it is computed."""

import json
import pickle

import numpy as np
import pytest

from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.findings import Certificate, Counterfactual, Part, Parts
from gflowexplainer.explanation.ranked import Names, RankedPath, RankedSubgraphs, class_of, counted, shown

ROWS = [((4, 0, 1), 0.75, 0.9, (0.2, 0.8), (0.6, 0.4)), ((4, 0), 0.25, 0.5, (0.7, 0.3), (0.1, 0.9))]


class Source:
    """Counts what it is asked."""

    def __init__(self):
        self.asked = []

    def subgraphs(self, position):
        self.asked.append("subgraphs")
        return RankedSubgraphs.of(ROWS)

    def doubts(self, position):
        return ("a doubt",)

    def paths(self, position):
        return (RankedPath((4, 0), (3,), 0.5),)

    def parts(self, position):
        self.asked.append("parts")
        return Parts((Part((4, 0), (0.2, 0.8), (0.6, 0.4)),), (0.2, 0.8), (0.6, 0.4), 0.9, None)

    def counterfactual(self, position, **question):
        self.asked.append(question)
        return Counterfactual("edges", (0, 4), ((0, 4),), (0.9, 0.1), (0.2, 0.8), True, True)


def test_an_answer_is_computed_once_when_it_is_asked_for():
    distribution = SubgraphDistribution(4, source=Source())
    assert (distribution.answers("parts"), distribution.source.asked) == ([], [])
    assert distribution.get("parts") is distribution.get("parts")
    first = distribution.get("counterfactual", by="edges")
    assert first is distribution.get("counterfactual", by="edges")
    distribution.get("counterfactual", by="nodes")
    assert distribution.source.asked == ["parts", {"by": "edges"}, {"by": "nodes"}]


def test_what_is_stored_and_sent_is_there_without_the_model():
    before = SubgraphDistribution(None, link=(4, 0), left_out=7, prediction_kept=(0.1, 0.9), source=Source())
    before.get("counterfactual", by="edges")
    before.known["certificate"] = Certificate(0.2, 0.05, 12)
    stored = SubgraphDistribution.from_dict(json.loads(json.dumps(before.to_dict())))
    for after in (stored, pickle.loads(pickle.dumps(before))):
        assert after.known == before.known
        assert (after.link, after.left_out, after.prediction_kept) == ((4, 0), 7, (0.1, 0.9))
        assert after.get("subgraphs")[0].prediction_only == (0.2, 0.8)
        with pytest.raises(ConfigError, match="model is not at hand"):
            after.get("counterfactual", by="nodes")


def test_the_model_is_evaluated_once_and_only_if_a_prediction_is_looked_at():
    calls = []

    def compute(without):
        calls.append(without)
        return [(0.1, 0.9), (0.7, 0.3)] if without else [(0.4, 0.6), (0.5, 0.5)]

    ranked = RankedSubgraphs(np.array([[0, 1], [1, -1]]), [0.6, 0.4], [1.0, 2.0], compute)
    first, second = ranked
    assert ([s.nodes for s in ranked], first != second, len(second), calls) == ([(0, 1), (1,)], True, 1, [])
    assert second.prediction_only == (0.5, 0.5)
    assert calls == [False]
    assert (first.prediction_only, first.prediction_without, second.class_without) == ((0.4, 0.6), (0.1, 0.9), 0)
    assert calls == [False, True]


def test_names_of_several_types():
    names = Names({"a": 3, "b": 2}, {("a", "to", "b"): 4})
    ranked = RankedSubgraphs.of(ROWS).renamed(names)
    assert ranked[0].nodes == (("b", 1), ("a", 0), ("a", 1))
    assert pickle.loads(pickle.dumps(ranked)) == ranked
    assert ranked[-1].to_dict()["prediction_only"] == (0.7, 0.3)
    assert Source().counterfactual(0).renamed(names).edges == ((("a", 0), ("b", 1)),)
    assert Source().paths(0)[0].renamed(names).edges == ((("a", "to", "b"), 3),)
    with pytest.raises(IndexError):
        ranked[2]


def test_words():
    assert (shown((0.1, 0.9)), shown((0.5,))) == ("class 1 (0.90)", "0.500")
    assert (class_of((0.1, 0.9)), class_of((3.0,))) == (1, None)
    said = [counted(0, "node"), counted(1, "node"), counted(2, "node"), counted(2, "process", "processes")]
    assert said == ["0 nodes", "1 node", "2 nodes", "2 processes"]
