import numpy as np
import pytest
from matplotlib.collections import LineCollection

from gflowbench.paper import Results, Scope
from gflowbench.paper import qualitative as experiment
from gflowbench.paper.case_pictures import KINDS, draw_molecules, draw_sentences, draw_subgraphs
from gflowbench.paper.cases import OURS, RG
from gflowbench.paper.molecule_cases import LARGER, PG

SQUARE = {
    "nodes": [10, 11, 12, 13, 14],
    "edges": [[0, 1], [1, 2], [2, 3], [0, 3], [3, 4]],
    "motif": [True, True, True, True, False],
    "center": 0,
    "found": {OURS: [True, True, True, False, False], RG: [True, False, False, True, True]},
    "index": 10,
}
WATER = {
    "index": 5,
    "group": "NO2",
    "symbols": ["O", "H", "H"],
    "edges": [[0, 1], [0, 2]],
    "orders": [1, 1],
    "truth": [True, False],
    "nodes": {OURS: [True, True, False], LARGER: [True, True, True]},
    "best": [False, True],
}
SENTENCE = {
    "words": ["not", "much", "fun"],
    "probability": [0.9, 0.2, 0.5],
    "chosen": [True, False, True],
    "share": 0.4,
    "better": 0.93,
    "negative": 0.8,
    "right": True,
}


def score(overlap, found):
    return {"nodes": 3.0, "inside": 0.9, "found": found, "overlap": overlap, "connected": 1.0}


def outcome(ours, peer, *, scattered, ring):
    scope = Scope()
    values = {
        dataset: {"shown": SQUARE, "scores": {OURS: score(*ours), RG: score(*peer)}, "instances": 4}
        for dataset in experiment.here(scope)
    }
    whole = {"pieces": 1.0, "connected": 1.0, "found": ring, "ring": ring}
    split = {"pieces": 3.0, "connected": scattered, "found": 0.5, "ring": 0.5}
    values["molecules"] = {"shown": [WATER], "scores": {OURS: whole, LARGER: whole, PG: split}, "instances": 4}
    values["sentences"] = {"shown": [SENTENCE], "accuracies": {"test": 0.75}, "provenance": "text", "fitted": 3}
    return experiment.EXPERIMENT.present(Results(scope, values))


def test_verdicts_as_the_paper_says():
    found = outcome((0.9, 0.9), (0.5, 0.6), scattered=0.1, ring=0.9)
    assert [one.verdict for one in found.verdicts] == ["holds"] * 4 + ["cannot be told"]
    assert "'not fun'" in found.verdicts[-1].evidence
    assert found.tables[0].rows[0][2] == "3 of 3 chosen, motif 4"
    assert found.tables[0].rows[1][2] == "2 of 3 chosen, motif 4"
    assert any("75.0% of test" in note for note in found.notes)
    for drawing in found.drawings:
        assert drawing.draw().axes


def test_verdicts_otherwise():
    found = outcome((0.5, 0.6), (0.9, 0.9), scattered=0.9, ring=0.1)
    verdicts = [one.verdict for one in found.verdicts]
    assert verdicts == ["does not hold", "does not hold", "holds in part", "does not hold", "cannot be told"]


def test_without_the_files_there_are_neither_molecules_nor_sentences(no_reference):
    steps = experiment.plan(Scope(fast=True))
    assert [step.name for step in steps] == ["ba-shapes", "ba-community", "tree-cycles", "tree-grid", "ba-2motifs"]
    values = {
        step.name: {"shown": SQUARE, "scores": {OURS: score(0.9, 0.9), RG: score(0.5, 0.5)}, "instances": 4}
        for step in steps
    }
    found = experiment.EXPERIMENT.present(Results(Scope(fast=True), values))
    assert [drawing.name for drawing in found.drawings] == ["subgraphs"]
    assert found.verdicts[-1].evidence == "The text of the sentences is not there."


def test_every_node_is_drawn_once_as_what_it_is():
    figure = draw_subgraphs({"Square": SQUARE})
    first, second = (ax for ax in figure.axes if ax.get_title())
    assert (first.get_title(), second.get_title()) == (f"Square: {OURS}", f"Square: {RG}")
    counts = [len(dots.get_offsets()) for dots in first.collections if hasattr(dots, "get_sizes")][: len(KINDS)]
    # The explained node, two more chosen ones in the motif, none outside, one missed, one neither.
    assert counts == [1, 2, 0, 1, 1]
    counts = [len(dots.get_offsets()) for dots in second.collections if hasattr(dots, "get_sizes")][: len(KINDS)]
    assert counts == [1, 1, 1, 2, 0]


def test_a_molecule_is_drawn_by_each_explainer():
    figure = draw_molecules([WATER], PG)
    assert [ax.get_title().split("\n")[1] for ax in figure.axes] == [OURS, LARGER, PG]
    lines = [[c for c in ax.collections if isinstance(c, LineCollection)] for ax in figure.axes]
    bands = [[line for c in found if set(c.get_linewidths()) == {13} for line in c.get_segments()] for found in lines]
    # One bond lies inside {O, H}, two inside the whole, and one is PGExplainer's.
    assert [len(band) for band in bands] == [1, 2, 1]
    assert not np.array_equal(bands[0][0], bands[2][0])


def test_words_are_set_twice():
    figure = draw_sentences([SENTENCE])
    texts = [[text.get_text() for text in ax.texts] for ax in figure.axes[:2]]
    assert texts == [SENTENCE["words"]] * 2
    filled = [[patch.get_facecolor()[3] > 0 for patch in ax.patches] for ax in figure.axes[:2]]
    assert filled == [[True, False, True], [True, True, True]]


@pytest.mark.parametrize("fast", [False, True])
def test_steps_know_what_decides_them(fast):
    for step in experiment.plan(Scope(fast=fast)):
        assert "ours" in step.settings
