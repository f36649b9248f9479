import io

import numpy as np
import pytest

from gflowbench.paper.line_figures import STYLES, Line, Panel, draw_panels


def test_curves_of_seeds_are_averaged_with_their_range():
    curves = np.random.default_rng(0).random((3, 5))
    line = Line.of_seeds(range(5), curves.tolist())
    assert line.y == pytest.approx(curves.mean(axis=0))
    assert line.low == pytest.approx(curves.min(axis=0))
    assert line.high == pytest.approx(curves.max(axis=0))


def test_styles_differ_without_colour():
    assert (
        len({str(style["linestyle"]) for style in STYLES}) == len({style["marker"] for style in STYLES}) == len(STYLES)
    )


def test_a_name_looks_the_same_in_all_panels_and_is_in_the_legend_once():
    lines = {"a $x": Line([1, 2], [1.0, 2.0]), "b": Line([1, 2], [2.0, 1.0], [1.0, 0.5], [3.0, 2.0])}
    panels = [Panel("one", lines, "x", "y (s)"), Panel("two", {"b": lines["b"]}, "x", "y (s)", log_y=True)]
    figure = draw_panels(panels, columns=2)
    figure.savefig(io.BytesIO(), format="svg")
    first, second = figure.axes
    looks = [
        [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines] for axes in (first, second)
    ]
    assert looks[0][1] == looks[1][0] != looks[0][0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a $x", "b"]
    assert (first.get_yscale(), second.get_yscale()) == ("linear", "log")
    assert first.get_ylabel() == "y (s)"


def test_empty_places_of_the_grid_stay_empty():
    panels = [Panel(str(n), {"a": Line([0, 1], [0, 1])}, "x", "y", from_zero=True) for n in range(3)]
    figure = draw_panels(panels, columns=2)
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
    assert figure.axes[0].get_ylim()[0] == 0
    assert not figure.legends
