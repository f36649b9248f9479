from xml.etree import ElementTree

import pytest

from gflowexplainer.drawing.colours import PARTS
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.drawing.still import still
from gflowexplainer.report import Case
from gflowexplainer.testing import graph_of, path, star

from ..conftest import HOSTILE, explain_by_hand

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(case):
    return ElementTree.fromstring(still(Scene.of(case)))


def test_what_is_seen_first_is_drawn(house_case):
    tree = drawn(house_case())
    assert sorted(text.text for text in tree.iter(SPACE + "text")) == ["0", "1", "2", "3", "4"]
    assert len(list(tree.iter(SPACE + "line"))) == 6
    radii = sorted(float(circle.get("r")) for circle in tree.iter(SPACE + "circle"))
    assert radii == [9.5, 9.5, 19, 19, 19]
    assert [c.get("stroke") for c in tree.iter(SPACE + "circle")].count("black") == 1


def test_hubs_are_summarised():
    tree = drawn(Case("hub", explain_by_hand(star(200), [((0, 1), 1.0)], 0)))
    assert "+192 neighbours" in [text.text for text in tree.iter(SPACE + "text")]
    assert len(list(tree.iter(SPACE + "circle"))) == 9


def test_words_and_molecules_and_hostile_labels(house_case):
    tree = drawn(Case("s", explain_by_hand(path(3), [((0, 1), 1.0)], None), words=["not", "good", "<b>"]))
    assert [text.text for text in tree.iter(SPACE + "text")] == ["not", "good", "<b>"]
    texts = [text.text for text in drawn(house_case(labels=[HOSTILE] * 5)).iter(SPACE + "text")]
    assert all(HOSTILE.startswith(text[:-1]) for text in texts)
    pytest.importorskip("rdkit")
    ring = explain_by_hand(graph_of([(i, (i + 1) % 6) for i in range(6)] + [(5, 6)], 7), [((5, 6), 1.0)], None)
    tree = drawn(Case("phenol", ring, smiles="c1ccccc1O"))
    assert [text.text for text in tree.iter(SPACE + "text")] == ["OH"]
    assert len(list(tree.iter(SPACE + "line"))) == 11  # four single bonds, three double ones, one band


def test_several_parts_have_bands_and_numbers():
    explanation = explain_by_hand(path(9), [((0, 1), 0.6), ((6, 7), 0.4)], None, parts=[(0, 1), (6, 7)])
    tree = drawn(Case("two parts", explanation))
    tints = [circle.get("fill") for circle in tree.iter(SPACE + "circle")]
    assert [tints.count(tint) for tint, _ in PARTS[:2]] == [2, 2]
    assert [text.text for text in tree.iter(SPACE + "text") if text.get("font-weight")] == ["1", "2"]
    words = drawn(Case("words", explanation, words=list("abcdefghi")))
    assert [rect.get("stroke") for rect in words.iter(SPACE + "rect")].count(PARTS[1][1]) == 2
