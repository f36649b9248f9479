"""Pictures painted by matplotlib: what is drawn has room on them."""

import numpy as np
import pytest

from gflowexplainer.errors import ConfigError
from gflowexplainer.report import Case
from gflowexplainer.testing import graph_of, path

from ..conftest import explain_by_hand

pytest.importorskip("matplotlib")


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
    ax = explain_by_hand(graph, [((0,), 1.0)], node).draw(smiles=smiles)
    ax.get_figure().canvas.draw()
    box = ax.get_window_extent()
    assert min(box.width, box.height) > 0.3 * max(box.width, box.height)
    points = ax.transData.transform(np.concatenate([c.get_offsets() for c in ax.collections if len(c.get_offsets())]))
    assert (points > [box.x0, box.y0]).all()
    assert (points < [box.x1, box.y1]).all()


def test_a_lone_surrogate_in_a_label_is_drawn_as_a_question_mark(tmp_path):
    explanation = explain_by_hand(path(3), [((0, 1), 1.0)], 0)
    explanation.draw(tmp_path / "x.png", labels=["a\ud800", "b", "c"])
    assert Case("case \udfff", explanation, note="\ud800", classes=["\ud800"]).name == "case ?"
    assert (tmp_path / "x.png").is_file()


def test_pictures_that_cannot_be_written(tmp_path):
    explanation = explain_by_hand(path(3), [((0,), 1.0)], 0)
    with pytest.raises(ConfigError, match=r"ends in '\.foo', which is no format of pictures\. Use one of .*png.*svg"):
        explanation.draw(tmp_path / "x.foo")
    with pytest.raises(ConfigError, match=r"could not be written: No such file .* Choose another folder"):
        explanation.draw(tmp_path / "nowhere" / "x.png")
    explanation.draw(tmp_path / "x.PNG")
    explanation.draw(tmp_path / "plain")
    assert {file.name for file in tmp_path.iterdir()} == {"x.PNG", "plain.png"}
