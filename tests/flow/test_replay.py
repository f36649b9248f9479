import torch

from gflowexplainer.flow.replay import Replay
from gflowexplainer.graphs.subgraphs import Subgraphs


def add(replay, rows):
    instance = torch.tensor([row[0] for row in rows])
    members = torch.tensor([row[1] for row in rows])
    replay.add(Subgraphs(instance, members), torch.tensor([row[2] for row in rows]))


def test_the_best_different_subgraphs_are_kept():
    replay = Replay(2, draws=2, max_nodes=2, device="cpu", capacity=2)
    add(replay, [(0, [1, 2], -1.0), (0, [2, 1], -1.0), (0, [3, -1], -5.0), (1, [7, 8], -2.0)])
    add(replay, [(0, [4, -1], -0.5), (0, [1, 2], -1.0)])
    drawn = replay.draw(torch.tensor([0, 1]), 0)
    mine = {frozenset(row[row >= 0].tolist()) for row in drawn.members[drawn.instance == 0]}
    assert mine == {frozenset({1, 2}), frozenset({4})}
    assert drawn.members[drawn.instance == 1].sort(dim=1).values.tolist() == [[7, 8]]


def test_without_draws_nothing_is_kept():
    replay = Replay(2, draws=0, max_nodes=3, device="cpu")
    add(replay, [(0, [1, 2, 3], -1.0)])
    assert len(replay.draw(torch.tensor([0]), 0)) == 0
    assert replay.tensors() == {}


def test_a_checkpoint_restores_the_memory():
    replay = Replay(1, draws=1, max_nodes=2, device="cpu")
    add(replay, [(0, [5, 6], -1.0)])
    other = Replay(1, draws=1, max_nodes=2, device="cpu")
    other.load_tensors(replay.tensors())
    assert torch.equal(other.draw(torch.tensor([0]), 1).members, replay.draw(torch.tensor([0]), 1).members)


def test_the_same_nodes_in_another_order_are_remembered_once():
    replay = Replay(1, draws=3, max_nodes=3, device="cpu", capacity=3)
    add(replay, [(0, [1, 2, 3], -1.0), (0, [3, 1, 2], -1.0), (0, [5, 4, -1], -2.0)])
    add(replay, [(0, [4, 5, -1], -2.0), (0, [2, 3, 1], -1.0)])
    drawn = replay.draw(torch.tensor([0]), 0)
    assert sorted(sorted(row[row >= 0].tolist()) for row in drawn.members) == [[1, 2, 3], [4, 5]]
