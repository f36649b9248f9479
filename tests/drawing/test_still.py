from xml.etree import ElementTree

import pytest

from gflowexplainer.drawing.scene import Scene
from gflowexplainer.drawing.still import still
from gflowexplainer.report import Case
from gflowexplainer.testing import graph_of, path, star

from ..conftest import HOSTILE, explain_by_hand

pytest.importorskip("matplotlib")
SPACE = "{http://www.w3.org/2000/svg}"


def texts(case):
    picture = still(Scene.of(case))
    assert still(Scene.of(case)) == picture
    return [text.text for text in ElementTree.fromstring(picture).iter(SPACE + "text")]


def test_what_is_seen_first_is_drawn(house_case):
    assert sorted(texts(house_case())) == ["0", "1", "2", "3", "4"]
    assert len(texts(Case("hub", explain_by_hand(star(200), [((0, 1), 1.0)], 0)))) == 9


def test_words_and_molecules_and_hostile_labels(house_case):
    sentence = Case("s", explain_by_hand(path(3), [((0, 1), 1.0)], None), words=["not", "good", "<b>"])
    assert texts(sentence) == ["not", "good", "<b>"]
    assert all(HOSTILE.startswith(text[:-1]) for text in texts(house_case(labels=[HOSTILE] * 5)))
    pytest.importorskip("rdkit")
    ring = explain_by_hand(graph_of([(i, (i + 1) % 6) for i in range(6)] + [(5, 6)], 7), [((5, 6), 1.0)], None)
    assert texts(Case("phenol", ring, smiles="c1ccccc1O")) == ["OH"]


def test_several_parts_are_numbered():
    explanation = explain_by_hand(path(9), [((0, 1), 0.6), ((6, 7), 0.4)], None, parts=[(0, 1), (6, 7)])
    assert texts(Case("two parts", explanation, labels=list("abcdefghi"))).count("1") == 1
