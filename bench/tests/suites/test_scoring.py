import math

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.explain.metric import characterization_score

from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites.cases import Case, predict_cases, whole_predictions
from gflowbench.suites.scoring import (
    NodeExplanation,
    connected_top,
    contribution_agreement,
    f1,
    match,
    node_sets,
    score_cases,
    shown_parts,
    summarize,
    top_nodes,
)


class CountNodes(nn.Module):
    """Says class 1 of a graph with probability sigmoid(sum of x), and of a node with that of its neighbours."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        if batch is None:
            total = torch.zeros(len(x)).index_add(0, edge_index[1], x[edge_index[0], 0])
        else:
            total = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x[:, 0])
        return torch.stack([torch.zeros_like(total), total], dim=1)


def path_case(values: list[float], center: int | None = None, truth: TaskTruth | None = None) -> Case:
    n = len(values)
    forth = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    x = torch.tensor(values)[:, None]
    return Case(0, x, torch.cat([forth, forth.flip(0)], dim=1), torch.arange(n), center, 1, truth)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def all_of(n: int, *parts: tuple[int, ...]) -> TaskTruth:
    return TaskTruth(n, Combination.ALL, parts)


def test_predictions_on_induced_subgraphs_by_hand() -> None:
    case = path_case([1.0, 2.0, -4.0])
    masks = torch.tensor([[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0]], dtype=torch.bool)
    found = predict_cases(CountNodes(), [case, case], [masks, masks[1:2]])
    assert found[0].tolist() == pytest.approx([sigmoid(-1), sigmoid(1), sigmoid(-2), 0.5])
    assert found[1].tolist() == pytest.approx([sigmoid(1)])
    assert whole_predictions(CountNodes(), [case]).tolist() == pytest.approx([sigmoid(-1)])


def test_explained_node_always_stays() -> None:
    case = path_case([1.0, 5.0, 3.0], center=1)
    masks = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]], dtype=torch.bool)
    found = predict_cases(CountNodes(), [case], [masks])[0]
    assert found.tolist() == pytest.approx([0.5, sigmoid(1), sigmoid(3), sigmoid(4)])


def test_many_subgraphs_are_cut_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    cases = [path_case(torch.randn(n, generator=generator).tolist()) for n in (4, 9, 6)]
    masks = [torch.rand(5, case.num_nodes, generator=generator) < 0.5 for case in cases]
    together = predict_cases(CountNodes(), cases, masks)
    monkeypatch.setattr("gflowbench.suites.cases._NODES_AT_ONCE", 20)
    for one, other in zip(together, predict_cases(CountNodes(), cases, masks), strict=True):
        assert torch.allclose(one, other)


def test_match_by_hand() -> None:
    assert f1((0, 1, 2), (1, 2, 3)) == pytest.approx(2 / 3)
    both = all_of(6, (0, 1), (4, 5))
    assert match([(0, 1, 4, 5)], both) == {"exact": 1.0, "f1": 1.0, "exact_parts": 0.0}
    assert match([(4, 5), (0, 1)], both) == {"exact": 1.0, "f1": 1.0, "exact_parts": 1.0}
    assert match([(0, 1)], both) == {"exact": 0.0, "f1": pytest.approx(2 / 3), "exact_parts": 0.0}
    either = TaskTruth(6, Combination.ANY, ((0, 1), (4, 5)))
    assert match([(4, 5)], either) == {"exact": 1.0, "f1": 1.0}
    assert match([(0, 1, 4, 5)], either) == {"exact": 0.0, "f1": pytest.approx(2 / 3)}
    assert match([(0,)], TaskTruth(6, Combination.NONE)) == {}


def test_agreement_with_contributions_by_hand() -> None:
    truth = TaskTruth(3, Combination.CONTRIBUTIONS, (), {0: 1.0, 1: -2.0})
    good = NodeExplanation(torch.tensor([1.0, 2.0, 0.0]), signed=torch.tensor([1.0, -1.0, 5.0]))
    assert truth.union.tolist() == [False, True, False]
    assert contribution_agreement(good, truth) == {"concordance": 1.0, "sign": 1.0}
    tied = NodeExplanation(torch.tensor([1.0, 1.0, 2.0]), signed=torch.tensor([1.0, 1.0, 0.0]))
    # Pairs (1, 0) tied, (1, 2) and (0, 2) wrong.
    assert contribution_agreement(tied, truth) == {"concordance": pytest.approx(0.5 / 3), "sign": 0.0}


def test_connected_top_finds_the_heavier_end() -> None:
    case = path_case([0.0] * 6)
    scores = torch.tensor([5.0, 1.0, 0.0, 0.0, 4.0, 4.0])
    assert connected_top(case, scores, 2) == (4, 5)
    assert top_nodes(scores, 2) == (0, 4)
    assert connected_top(path_case([0.0] * 6, center=2), scores, 3) == (0, 1, 2)


def test_ranking_explainers_get_the_size_of_the_truth() -> None:
    scores = torch.tensor([5.0, 1.0, 0.0, 0.0, 4.0, 4.0])
    assert shown_parts(path_case([0.0] * 6, truth=all_of(6, (0, 1))), NodeExplanation(scores)) == ((4, 5),)
    assert shown_parts(path_case([0.0] * 6, truth=all_of(6, (0,), (4, 5))), NodeExplanation(scores)) == ((0, 4, 5),)
    assert shown_parts(path_case([0.0] * 6), NodeExplanation(scores)) is None
    node = path_case([0.0] * 6, center=2, truth=all_of(6, (0,), (4, 5)))
    assert shown_parts(node, NodeExplanation(scores)) == ((0, 2, 4, 5),)


def test_scores_of_a_case_by_hand() -> None:
    case = path_case([3.0, 1.0, -2.0], truth=all_of(3, (0, 1)))
    explanation = NodeExplanation(torch.tensor([0.9, 0.2, 0.3]), ((0,),))
    row = score_cases(CountNodes(), [case], [explanation], [node_sets(case, explanation, (2,), own=3)])[0]
    assert row["auc"] == 0.5
    assert row["exact"] == 0
    assert row["f1"] == pytest.approx(2 / 3)
    assert row["size"] == 1
    assert row["whole"] == pytest.approx(sigmoid(2))
    assert row["sufficiency"] == pytest.approx(sigmoid(3))
    assert row["necessity"] == pytest.approx(sigmoid(2) - sigmoid(-1))
    assert row["sufficiency@2"] == pytest.approx(sigmoid(1))
    assert row["necessity@2"] == pytest.approx(sigmoid(2) - sigmoid(1))
    assert row["sufficiency@own"] == row["whole"]
    summary = summarize([row, {"auc": 1.0}, {"auc": math.nan}])
    assert summary["auc"] == 0.75
    plus, minus = torch.tensor(row["necessity"]), torch.tensor(max(row["whole"] - row["sufficiency"], 0.0))
    assert summary["characterization"] == pytest.approx(float(characterization_score(plus, minus)), abs=1e-5)


def test_explained_node_does_not_count_against_the_truth() -> None:
    case = path_case([0.0] * 4, center=1, truth=all_of(4, (2, 3)))
    explanation = NodeExplanation(torch.tensor([0.5, 9.0, 0.8, 0.7]), ((1, 2, 3),))
    row = score_cases(CountNodes(), [case], [explanation], [{}])[0]
    assert (row["auc"], row["exact"], row["f1"], row["size"]) == (1, 1, 1, 3)


def test_truth_within_some_nodes() -> None:
    truth = TaskTruth(9, Combination.ANY, ((2, 5), (7, 8)))
    local = truth.within(torch.tensor([5, 2, 4]))
    assert local.parts == ((0, 1),)
    assert local.num_nodes == 3
    assert truth.within(torch.tensor([0])).combination is Combination.NONE
