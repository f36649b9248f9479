"""Explainers of links on graphs that can be worked out by hand."""

import pytest
import torch

from gflowbench.explainers.registry import named_of_links, names
from gflowbench.typed.link_peers import create_link_peer, import_link_peer
from gflowbench.typed.link_scores import score_links
from gflowbench.typed.toy_links import shared_attributes, shared_neighbours
from gflowexplainer.errors import ConfigError


def by_ends(task, score):
    return {tuple(end for _, end in task.ends_of(edge)): value for edge, value in score.items()}


def test_gradients_of_a_plain_link_by_hand():
    task = shared_neighbours()
    for name, wanted in (("saliency", 2.0), ("integrated-gradients", 1.0)):
        score = by_ends(task, create_link_peer(name).explain(task, 0).scores[0])
        counts = {(1, 0), (2, 0), (1, 3), (2, 3)}  # what arrives at the ends from neighbours that they share
        assert {ends: value for ends, value in score.items() if abs(value) > 1e-6} == pytest.approx(
            dict.fromkeys(counts, wanted)
        )
    # From no edges to all the score grows by 4, and the shares add up to it.
    assert sum(score.values()) == pytest.approx(4.0)


def test_gradients_of_a_typed_link_by_hand():
    task = shared_attributes()
    score = create_link_peer("saliency").explain(task, 0).scores[0]
    # Attribute 1 counts at both ends; attribute 2 of the item would, had the user it.
    assert {edge for edge, value in score.items() if value} == set(task.paths[0][0])
    assert score_links([score], task, 0)[0] == 1.0


def test_gradients_reach_masks_after_another_explainer_and_leave_none_behind():
    task = shared_neighbours()
    create_link_peer("gnnexplainer", epochs=2).explain(task, 0)
    assert max(create_link_peer("saliency").explain(task, 0).scores[0].values()) == 2.0
    assert not task.model.layer.explain
    assert float(task.model(task.graph.x, task.graph.edge_index, task.test[:, :1])) == 3.0


def test_gradient_times_input_by_hand():
    task = shared_neighbours()
    score = by_ends(task, create_link_peer("gradient-x-input").explain(task, 0).scores[0])
    # The score is twice x_1 . x_1 + x_2 . x_2, less 1: nodes 1 and 2 have a share of 4 each, all others none.
    wanted = {ends: 2.0 * len({1, 2} & set(ends)) for ends in score}
    assert score == pytest.approx(wanted)
    typed = shared_attributes()
    found = create_link_peer("gradient-x-input").explain(typed, 0).scores[0]
    assert {edge for edge, value in found.items() if value} == set(typed.paths[0][0])


def test_floors_by_hand():
    task = shared_neighbours()
    near = by_ends(task, create_link_peer("distance").explain(task, 0).scores[0])
    # 0 - 1 touches one end and is a step from the other; 4 - 5 is one and three steps from them.
    assert near[0, 1] == near[1, 0] == pytest.approx(1 / 2)
    assert near[4, 5] == pytest.approx(1 / (1 + 1 + 3))
    first, again, other = (create_link_peer("random").explain(task, seed).scores for seed in (0, 0, 1))
    assert first == again != other
    shortest = by_ends(task, create_link_peer("shortest-ways").explain(task, 0).scores[0])
    assert set(shortest) == {(0, 1), (1, 0), (1, 3), (3, 1), (0, 2), (2, 0), (2, 3), (3, 2)}
    assert set(names("floors", links=True)) == {
        "random",
        "distance",
        "shortest-ways",
        "degree",
        "rare-ways",
        "rarest-way",
    }


def test_rare_neighbours_and_ways_by_hand():
    task = shared_neighbours()
    rare = by_ends(task, create_link_peer("degree").explain(task, 0).scores[0])
    # 0 has three neighbours, 1 two, 5 one.
    assert rare[0, 1] == pytest.approx(1 / 6**0.5)
    assert rare[5, 4] == pytest.approx(1 / 2**0.5)
    for name in ("rare-ways", "rarest-way"):
        ways = by_ends(task, create_link_peer(name).explain(task, 0).scores[0])
        assert ways == pytest.approx(dict.fromkeys([(0, 1), (1, 3), (0, 2), (2, 3)], 1 / 2))
    # In the typed graph no edge runs along the way, so those against it count; both ends share one attribute of two.
    typed = shared_attributes()
    found = create_link_peer("rare-ways").explain(typed, 0).scores[0]
    assert found == pytest.approx(dict.fromkeys(typed.paths[0][0], 1 / 2))


def test_every_explainer_scores_both_toys():
    quick = {"gnnexplainer": {"epochs": 2}, "gflow": {"max_nodes": 4, "epochs": 1, "num_contexts": 2}}
    quick |= {"pgexplainer": {"epochs": 2}, "gnnshap": {"num_samples": 20}, "page-link": {"epochs": 2}}
    for task in (shared_neighbours(), shared_attributes()):
        arguments = (
            (task.graph.x, task.graph.edge_index) if task.is_plain else (task.graph.x_dict, task.graph.edge_index_dict)
        )
        before = task.model(*arguments, task.test)
        for name in named_of_links(["all"])[0]:
            answers = create_link_peer(name, **quick.get(name, {})).explain(task, 0)
            assert len(answers.scores) == task.test.size(1), name
            assert all(set(score) <= set(around) for score, around in zip(answers.scores, task.around, strict=True))
            assert torch.equal(task.model(*arguments, task.test), before), name


def test_links_are_scored_by_hand():
    task = shared_neighbours()
    (key, place), middle = task.paths[0][0][0], task.paths[0][0][1]
    best = {(key, place): 3.0, middle: 2.0, (key, 15): 1.0}
    auc, hits = score_links([best, {}], task, 0)
    # Of the four true edges two are first; two are tied with eleven others at 0 and behind one.
    assert auc == pytest.approx(((2 * 12 + 2 * 11 / 2) / (4 * 12) + 0.5) / 2)
    assert hits[3] == hits[10] == 0.5


def test_words_stand_for_several_and_say_who_explains_no_links():
    found, others = named_of_links(["floors", "gflow"])
    assert found == [*names("floors", links=True), "gflow"]
    assert others == ["probability", "breadth-first", "rarity", "everything", "nothing"]
    everyone, rest = named_of_links(["all"])
    assert {"gnnexplainer", "paths-by-model", "saliency", "integrated-gradients", "page-link"} <= set(everyone)
    assert len(everyone) >= 14
    assert "subgraphx" in rest
    with pytest.raises(ConfigError, match="Did you mean 'shortest-ways'"):
        named_of_links(["shortest-way"])


def test_algorithms_of_pyg_explain_links_and_explainers_of_nodes_do_not():
    task = shared_neighbours()
    answers = import_link_peer("torch_geometric.explain:DummyExplainer").explain(task, 0)
    assert [len(score) for score in answers.scores] == [16, 16]
    with pytest.raises(ConfigError, match="not links"):
        import_link_peer("gflowbench.explainers.floors:Degree")


def test_some_links_of_a_task():
    task = shared_neighbours().every(2)
    assert torch.equal(task.test, torch.tensor([[0], [3]]))
    assert len(task.paths) == len(task.around) == 1
