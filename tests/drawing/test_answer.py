"""What is said of an explanation: of one set of nodes, with one set of numbers, everywhere."""

import pytest

from gflowexplainer.drawing.answer import enough, lines, needed, sentences, title
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.report import Case
from gflowexplainer.report.page import Report, render
from gflowexplainer.testing import path

from ..conftest import explain_by_hand


def said(node=None, **fields):
    return explain_by_hand(path(12), [((0, 1), 0.6), ((9, 10), 0.4)], node, parts=[(0, 1), (9, 10)], **fields)


def test_five_lines():
    case = Case("graph", said(), classes=["no", "yes"], labels=["C"] * 12)
    assert lines(case) == [
        ("prediction", "yes (0.90)"),
        ("because of", "4 nodes in 2 parts: C (0), C (1), C (9), C (10)"),
        ("enough?", "yes: with only them yes (0.80), 93 % of the prediction (random sets of this size 40 %)"),
        ("needed?", "yes: without them no (0.60)"),
        ("how sure", "2 different subgraphs sampled; probabilities are off by about 0.03"),
    ]
    assert case.explanation.certificate.distance == 0.2
    assert "off by 0.200, measured over all 12" in sentences(case)
    assert title(case) == "graph: yes (0.90)\n4 nodes in 2 parts, with only them 0.80, without 0.40"
    assert str(case.explanation).startswith("graph\n  prediction  class 1 (0.90)\n")


def test_list_picture_table_and_words_speak_of_one_set():
    case = Case("graph", said())
    scene = Scene.of(case)
    assert {node for node, level in zip(scene.ids, scene.level, strict=True) if level == 0} == {0, 1, 9, 10}
    row = render(Report("r", [case])).split("<tr data-case=")[1].split("</tr>")[0]
    for number in ("0.900", "0.800", "0.400", ">4<"):
        assert number in row
    assert "Nodes 0, 1 count most" in str(case.explanation.summary())


@pytest.mark.parametrize(
    ("only", "without", "answers"),
    [
        ((0.2, 0.8), (0.6, 0.4), ("yes", "yes")),
        ((0.4, 0.6), (0.3, 0.7), ("partly", "no")),
        ((0.9, 0.1), (0.45, 0.55), ("no", "partly")),
    ],
)
def test_enough_and_needed(only, without, answers):
    explanation = explain_by_hand(path(3), [((0, 1), 1.0)], 0, predictions=(only, without))
    assert (enough(explanation), needed(explanation)) == answers


def test_values_and_the_name_of_the_explained_node():
    value = said(mode="regression")
    assert (enough(value), needed(value)) == ("yes", "")
    assert ("needed?", "without them -0.500") in lines(Case("graph", value))
    assert title(Case("graph", value)) == "graph: 2.250\n4 nodes in 2 parts, with only them 1.50, without -0.50"
    named = Case("node 0", said(0), labels=["Mr. Hi", *map(str, range(1, 12))])
    assert title(named).startswith("node 0 (Mr. Hi): class 1 (0.90)")
