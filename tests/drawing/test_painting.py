"""Pictures painted by matplotlib: what is drawn has room on them."""

from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from gflowexplainer.drawing.painting import colour, still
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.report import Case
from gflowexplainer.testing import graph_of, path, star

from ..conftest import HOSTILE, explain_by_hand

pytest.importorskip("matplotlib")
SPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("graph", "node", "smiles"),
    [
        (path(2), 0, None),
        (path(6), None, None),
        (graph_of([(0, 1), (0, 2)]), 0, None),
        (graph_of([], 1), 0, None),
        (path(2), None, "CC"),
    ],
)
def test_nodes_on_one_line_have_room(graph, node, smiles):
    if smiles is not None:
        pytest.importorskip("rdkit")
    from matplotlib.collections import PathCollection

    ax = explain_by_hand(graph, [((0,), 1.0)], node).draw(smiles=smiles)
    ax.get_figure().canvas.draw()
    box = ax.get_window_extent()
    assert min(box.width, box.height) > 0.3 * max(box.width, box.height)
    points = ax.transData.transform(
        np.concatenate([c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)])
    )
    assert (points > [box.x0, box.y0]).all()
    assert (points < [box.x1, box.y1]).all()


def test_a_lone_surrogate_in_a_label_is_drawn_as_a_question_mark(tmp_path):
    explanation = explain_by_hand(path(3), [((0, 1), 1.0)], 0)
    explanation.draw(tmp_path / "x.png", labels=["a\ud800", "b", "c"])
    assert Case("case \udfff", explanation, note="\ud800", classes=["\ud800", "b"]).name == "case ?"
    assert (tmp_path / "x.png").is_file()


def test_pictures_that_cannot_be_written(tmp_path):
    explanation = explain_by_hand(path(3), [((0,), 1.0)], 0)
    with pytest.raises(ConfigError, match=r"ends in '\.foo', which is no format of pictures\. Use one of .*png.*svg"):
        explanation.draw(tmp_path / "x.foo")
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="cannot be made"):
        explanation.draw(tmp_path / "file" / "x.png")
    explanation.draw(tmp_path / "x.PNG")
    explanation.draw(tmp_path / "plain")
    assert {file.name for file in tmp_path.iterdir()} == {"file", "x.PNG", "plain.png"}


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
    assert texts(Case("phenol", ring, smiles="c1ccccc1O")) == []


def test_several_parts_are_numbered():
    explanation = explain_by_hand(path(9), [((0, 1), 0.6), ((6, 7), 0.4)], None, parts=[(0, 1), (6, 7)])
    assert texts(Case("two parts", explanation, labels=list("abcdefghi"))).count("1") == 1


def test_what_lowers_a_value_has_another_colour():
    assert colour(0) == colour(0.0) != colour(1)
    assert len({colour(-1), colour(-0.5), colour(0), colour(0.5), colour(1)}) == 5
    explanation = explain_by_hand(path(3), [((0, 1), 1.0)], None, mode="regression")
    explanation.node_contributions = torch.tensor([3.0, -2.0, 0.0])
    picture = still(Scene.of(Case("signed", explanation)))
    assert colour(1) in picture
    assert colour(-2 / 3) in picture
