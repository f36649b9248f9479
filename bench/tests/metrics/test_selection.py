import torch
from torch_geometric.data import Data

from gflowbench.explainers import Scores
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.selection import accuracy_of_first, first_nodes, hard_explanation, ranked_nodes
from gflowexplainer.graphs.instances import Instances


def bare(*sizes):
    empty = torch.empty(2, 0, dtype=torch.long)
    return Instances.of_graphs([Data(x=torch.ones(n, 1), edge_index=empty) for n in sizes])


def scored(values, **further):
    return Scores(torch.tensor(values), torch.empty(0), **further)


def test_nodes_rank_by_score_within_their_instance():
    instances = bare(3, 2)
    scores = scored([0.1, 0.9, 0.5, -2.0, -1.0])
    assert ranked_nodes(instances, scores).tolist() == [2, 0, 1, 1, 0]
    assert first_nodes(instances, scores, 2).tolist() == [False, True, True, True, True]
    assert first_nodes(instances, scores, torch.tensor([1, 0])).tolist() == [False, True, False, False, False]


def test_picks_come_first_and_are_not_filled_up():
    instances = bare(4)
    scores = scored([0.0, 0.0, 9.0, 9.0], order=torch.tensor([[1, 0, -1]]))
    assert ranked_nodes(instances, scores)[:2].tolist() == [1, 0]
    assert first_nodes(instances, scores, 3).tolist() == [True, True, False, False]


def test_ties_do_not_follow_node_ids():
    instances = bare(400)
    chosen = torch.nonzero(first_nodes(instances, scored([0.0] * 400), 100)).flatten().double()
    assert 150 < float(chosen.mean()) < 250
    again = first_nodes(instances, scored([0.0] * 400), 100)
    assert torch.equal(again, first_nodes(instances, scored([0.0] * 400), 100))


def test_a_selection_of_the_explainers_own_is_taken_as_it_is():
    instances = bare(3)
    mine = torch.tensor([True, False, False])
    scores = scored([0.0, 1.0, 2.0], selected=mine)
    assert torch.equal(hard_explanation(instances, scores, 2), mine)
    assert hard_explanation(instances, scored([0.0, 1.0, 2.0]), 2).tolist() == [False, True, True]


def test_accuracy_by_hand():
    instances = bare(4, 3, 2)
    motif = torch.tensor([True, True, False, False, True, True, True, False, False])
    truth = GroundTruth(torch.empty(0), torch.empty(0), motif)
    scores = scored([0.9, 0.1, 0.8, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    # Graph 0: k = 2, picks nodes 0 and 2, one is right. Graph 1: all three. Graph 2 has no motif.
    assert accuracy_of_first(instances, scores, truth) == 0.75
