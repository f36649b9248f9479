"""Explainers of links on graphs that can be worked out by hand, and against the formulas."""

import itertools
import math

import pytest
import torch

from gflowbench.explainers.foreign import import_explainer
from gflowbench.explainers.registry import create, names
from gflowbench.typed.link_pg_explainer import coin_flips, embeddings
from gflowbench.typed.link_scores import score_links
from gflowbench.typed.motif_links import load_motif_links
from gflowexplainer.errors import ConfigError


def explained(name, task, seed=0, **settings):
    explainer = create(name, links=True, **settings)
    explainer.fit(task, seed)
    return explainer.explain(task, seed)


def by_ends(task, score):
    return {tuple(end for _, end in task.ends_of(edge)): value for edge, value in score.items()}


def test_gradients_by_hand(shared_neighbours, shared_attributes):
    counts = {(1, 0), (2, 0), (1, 3), (2, 3)}  # what arrives at the ends from neighbours that they share
    for name, wanted in (("saliency", 2.0), ("integrated-gradients", 1.0)):
        score = by_ends(shared_neighbours, explained(name, shared_neighbours)[0])
        assert {ends: v for ends, v in score.items() if abs(v) > 1e-6} == pytest.approx(dict.fromkeys(counts, wanted))
    # From no edges to all the score grows by 4, and the shares add up to it.
    assert sum(score.values()) == pytest.approx(4.0)
    # The score is twice x_1 . x_1 + x_2 . x_2, less 1: nodes 1 and 2 have a share of 4 each, all others none.
    score = by_ends(shared_neighbours, explained("gradient-x-input", shared_neighbours)[0])
    assert score == pytest.approx({ends: 2.0 * len({1, 2} & set(ends)) for ends in score})
    # Attribute 1 counts at both ends; attribute 2 of the item would, had the user it.
    for name in ("saliency", "gradient-x-input"):
        (score,) = explained(name, shared_attributes)
        assert {edge for edge, value in score.items() if value} == set(shared_attributes.paths[0][0])
        assert score_links([score], shared_attributes, 0)[0] == 1.0


def test_gradients_reach_masks_after_another_explainer_and_leave_none_behind(shared_neighbours):
    task = shared_neighbours
    explained("gnnexplainer", task, epochs=2)
    assert max(explained("saliency", task)[0].values()) == 2.0
    assert not task.model.layer.explain
    assert float(task.model(task.graph.x, task.graph.edge_index, task.test[:, :1])) == 3.0


def test_occlusion_is_removal_one_by_one(shared_neighbours):
    for task in (load_motif_links(0).every(20), shared_neighbours):
        x, edges = task.graph.x, task.graph.edge_index
        for link, around, score in zip(task.test.t(), task.around, explained("occlusion", task), strict=True):
            whole = float(task.model(x, edges, link[:, None]).detach())
            for edge in around:
                others = torch.arange(edges.size(1)) != edge[1]
                lost = whole - float(task.model(x, edges[:, others], link[:, None]).detach())
                assert score[edge] == pytest.approx(lost, abs=1e-4)


def test_shapley_values(shared_neighbours, shared_attributes):
    (score,) = explained("gnnshap", shared_attributes, num_samples=30)
    edges, path = shared_attributes.around[0], set(shared_attributes.paths[0][0])
    # A coalition is worth 1 where it holds both edges of the one true path.
    for edge in edges:
        others = [e for e in edges if e != edge]
        wanted = 0.0
        for size in range(5):
            weight = math.factorial(size) * math.factorial(4 - size) / math.factorial(5)
            for some in itertools.combinations(others, size):
                wanted += weight * ((path <= {*some, edge}) - (path <= set(some)))
        assert score[edge] == pytest.approx(wanted, abs=1e-5)
    first, again, other = (explained("gnnshap", shared_neighbours, s, num_samples=60)[0] for s in (0, 0, 1))
    assert first == again != other
    assert sum(first.values()) == pytest.approx(4.0)  # from -1 without edges to 3 with all
    with pytest.raises(ConfigError, match="num_samples"):
        explained("gnnshap", shared_neighbours, num_samples=0)


def test_floors_by_hand(shared_neighbours, shared_attributes):
    task = shared_neighbours
    near = by_ends(task, explained("distance", task)[0])
    # 0 - 1 touches one end and is a step from the other; 4 - 5 is one and three steps from them.
    assert near[0, 1] == near[1, 0] == pytest.approx(1 / 2)
    assert near[4, 5] == pytest.approx(1 / (1 + 1 + 3))
    first, again, other = (explained("random", task, seed) for seed in (0, 0, 1))
    assert first == again != other
    shortest = by_ends(task, explained("shortest-ways", task)[0])
    assert set(shortest) == {(0, 1), (1, 0), (1, 3), (3, 1), (0, 2), (2, 0), (2, 3), (3, 2)}
    rare = by_ends(task, explained("degree", task)[0])
    # 0 has three neighbours, 1 two, 5 one.
    assert rare[0, 1] == pytest.approx(1 / 6**0.5)
    assert rare[5, 4] == pytest.approx(1 / 2**0.5)
    for name in ("rare-ways", "rarest-way"):
        ways = by_ends(task, explained(name, task)[0])
        assert ways == pytest.approx(dict.fromkeys([(0, 1), (1, 3), (0, 2), (2, 3)], 1 / 2))
    # In the typed graph no edge runs along the way, so those against it count; both ends share one attribute of two.
    found = explained("rare-ways", shared_attributes)[0]
    assert found == pytest.approx(dict.fromkeys(shared_attributes.paths[0][0], 1 / 2))


def test_what_pgexplainer_sees_and_learns(shared_neighbours, shared_attributes):
    adjacency = torch.zeros(8, 8).index_put(tuple(shared_neighbours.graph.edge_index), torch.tensor(1.0))
    assert torch.equal(embeddings(shared_neighbours)["node"], adjacency)  # features are one-hot
    typed = embeddings(shared_attributes)
    assert typed["user"].tolist() == [[1, 1, 0], [0, 0, 1]]
    assert typed["item"].tolist() == [[0, 1, 1]]
    assert typed["attr"].tolist() == [[0, 0, 0]] * 3  # nothing arrives at attributes
    torch.manual_seed(0)
    # Where the flip stays away from certainty, heads come up as often as sigmoid(1), but for a percent.
    heads = coin_flips(torch.full((20_000,), 1.0), 0.5) > 0.5
    assert float(heads.float().mean()) == pytest.approx(0.731, abs=0.02)
    scores = explained("pgexplainer", shared_neighbours, epochs=150, size=0.1)
    assert scores == explained("pgexplainer", shared_neighbours, epochs=150, size=0.1)
    ends = {(1, 0), (2, 0), (1, 3), (2, 3)}
    for score in scores:
        own = by_ends(shared_neighbours, score)
        assert min(own[pair] for pair in ends) > max(value for pair, value in own.items() if pair not in ends)


def test_every_explainer_scores_both_toys(shared_neighbours, shared_attributes):
    quick = {"gnnexplainer": {"epochs": 2}, "gflow": {"max_nodes": 4}, "pgexplainer": {"epochs": 2}}
    quick |= {"gnnshap": {"num_samples": 20}, "page-link": {"epochs": 2}}
    for task in (shared_neighbours, shared_attributes):
        arguments = (
            (task.graph.x, task.graph.edge_index) if task.is_plain else (task.graph.x_dict, task.graph.edge_index_dict)
        )
        before = task.model(*arguments, task.test)
        for name in names(links=True):
            scores = explained(name, task, **quick.get(name, {}))
            assert len(scores) == len(task), name
            assert all(set(score) <= set(around) for score, around in zip(scores, task.around, strict=True))
            assert torch.equal(task.model(*arguments, task.test), before), name


def test_algorithms_of_pyg_explain_links_and_explainers_of_nodes_do_not(shared_neighbours):
    made = import_explainer("torch_geometric.explain:DummyExplainer", links=True)
    assert [len(score) for score in made.explain(shared_neighbours, 0)] == [16, 16]
    with pytest.raises(ConfigError, match="not links"):
        import_explainer("gflowbench.explainers.floors:Degree", links=True)


def test_some_links_of_a_task(shared_neighbours):
    task = shared_neighbours.every(2)
    assert torch.equal(task.test, torch.tensor([[0], [3]]))
    assert len(task.paths) == len(task.around) == len(task) == 1
