import networkx as nx
import numpy as np
import pytest
import torch

from gflowexplainer.drawing.scene import BUDGET, Scene, node_limit
from gflowexplainer.report import Case
from gflowexplainer.testing import graph_of, path, star

from ..conftest import explain_by_hand, joins


def pairs(scene):
    return [tuple(sorted(scene.ids[end] for end in ends)) for ends in scene.ends]


def test_values_are_those_of_the_explanation(house_case):
    scene = Scene.of(house_case())
    assert scene.kind == "graph"
    assert dict(zip(scene.ids, scene.p, strict=True)) == {4: 1, 0: 1, 1: 0.75, 2: 0, 3: 0}
    assert scene.v == scene.p
    values = {(0, 4): 1, (0, 1): 0.75, (1, 4): 0.75, (1, 2): 0, (2, 3): 0, (0, 3): 0}
    assert dict(zip(pairs(scene), scene.q, strict=True)) == values
    assert [scene.ids[slot] for slot in scene.marked] == [4]
    assert scene.notes == []
    assert np.all(np.diff(scene.q) >= 0)


def test_truth_and_others_stand_at_their_edges(house_case):
    case = house_case()
    truth = joins(case.explanation, (0, 4), (2, 3))
    scores = torch.arange(12.0) - 2
    # Only one direction is marked: it counts for both.
    truth &= case.explanation.edge_index[0] < case.explanation.edge_index[1]
    scene = Scene.of(house_case(truth=truth, others={"peer": scores}))
    assert {pairs(scene)[k] for k in scene.truth} == {(0, 4), (2, 3)}
    (peer,) = scene.others
    for pair, value in zip(pairs(scene), peer["q"], strict=True):
        best = max(float(s) for s, e in zip(scores, case.explanation.edge_index.t().tolist(), strict=True)
                   if tuple(sorted(e)) == pair)  # fmt: skip
        assert value == pytest.approx((best + 2) / 11, abs=1e-3)
    assert max(peer["p"]) == 1
    # {0, 4} is among the two most probable edges; {2, 3} is not.
    assert scene.found == (1, 2)


def test_a_value_shows_signs():
    explanation = explain_by_hand(path(4), [((0, 1, 2), 1.0)], None, mode="regression")
    assert Scene.of(Case("plain", explanation)).most is None
    explanation.node_contributions = torch.tensor([3.0, -2.0, 0.0, 0.5])
    scene = Scene.of(Case("signed", explanation))
    assert scene.most == 3
    assert [scene.v[scene.ids.index(node)] for node in range(3)] == pytest.approx([1, -2 / 3, 0], abs=1e-3)
    assert scene.notes == ["The explanation raises the value by +3 and lowers it by -2: +1 together."]


def test_an_explainer_may_be_called_truth(house_case):
    truth = joins(house_case().explanation, (0, 4))
    scene = Scene.of(house_case(truth=truth, others={"truth": torch.ones(12)}))
    assert len(scene.truth) == 1
    assert scene.others[0]["q"] == [1] * 6


def test_scores_that_are_not_finite_are_said(house_case):
    scores = torch.ones(12)
    scores[3] = torch.nan
    scene = Scene.of(house_case(others={"peer": scores}))
    assert np.isfinite(scene.others[0]["q"]).all()
    assert "1 scores of peer are not finite" in scene.notes[0]


def test_only_the_neighbourhood_of_the_explained_node_is_drawn():
    graph = path(50)
    explanation = explain_by_hand(graph, [((20, 21, 22, 23), 1.0)], 20)
    scene = Scene.of(Case("far", explanation))
    near = nx.single_source_shortest_path_length(nx.path_graph(50), 20, cutoff=3)
    assert set(scene.ids) == set(near)
    assert "7 of the graph's 50 nodes: those within 3 steps of node 20" in scene.notes[0]


def test_large_graphs_are_cut_and_say_so():
    graph = star(500)
    for node in (7, None):
        scene = Scene.of(Case("hub", explain_by_hand(graph, [((7, 0, 9), 0.5), ((7, 0), 0.5)], node)), 40)
        assert len(scene.ids) == 40
        assert {0, 7, 9} <= set(scene.ids)
        assert "40 of the graph's 501 nodes: the most probable" in scene.notes[0]
        assert (scene.marked == []) == (node is None)


def test_a_report_of_many_cases_draws_fewer_nodes_of_each():
    assert node_limit(1) == 300
    assert node_limit(100) == BUDGET // 100
    assert node_limit(5000) == 60


def test_no_edges_and_lone_nodes():
    for size in (1, 3):
        graph = graph_of([], size)
        scene = Scene.of(Case("lone", explain_by_hand(graph, [((0,), 1.0)], None), truth=torch.zeros(0).bool()))
        assert len(scene.ids) == size
        assert scene.ends == []
        assert np.isfinite([scene.x, scene.y]).all()
        assert scene.found == (0, 0)


def test_words_stay_in_order(house_case):
    scene = Scene.of(house_case(words=list("vwxyz")))
    assert scene.kind == "sentence"
    assert scene.labels == scene.names == list("vwxyz")


def test_a_drawing_is_the_same_every_time(house_case):
    assert vars(Scene.of(house_case())) == vars(Scene.of(house_case()))


def test_ties_of_found_edges_are_drawn_fairly():
    # All four edges of a star are equally probable; two are true: half of two places.
    explanation = explain_by_hand(star(4), [((0, 1, 2, 3, 4), 1.0)], 0)
    assert Scene.of(Case("tie", explanation, truth=joins(explanation, (0, 1), (0, 2)))).found == (1, 2)


def test_parts_are_the_explanation_that_is_drawn():
    graph = graph_of([(i, i + 1) for i in range(11)], 12)
    explanation = explain_by_hand(graph, [((0, 1), 0.6), ((9, 10), 0.4)], None, parts=[(0, 1), (9, 10)])
    scene = Scene.of(Case("two parts", explanation))
    assert [{scene.ids[slot] for slot in part} for part in scene.parts] == [{0, 1}, {9, 10}]
    assert {node for node, level in zip(scene.ids, scene.level, strict=True) if level == 0} == {0, 1, 9, 10}


def test_one_part_is_drawn_without_a_band_even_if_it_is_not_the_first_subgraph():
    explanation = explain_by_hand(path(30), [((0, 1), 1.0)], 0, parts=[(0, 1, 2)])
    scene = Scene.of(Case("one part", explanation))
    assert scene.parts == []
    assert {node for node, level in zip(scene.ids, scene.level, strict=True) if level == 0} == {0, 1, 2}
