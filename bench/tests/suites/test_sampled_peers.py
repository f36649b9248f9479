import pytest
import torch
from torch import Tensor, nn

from gflowbench.suites.cases import Case
from gflowbench.suites.gnns import Shape, build_gnn
from gflowbench.suites.robust_scores import CONTEXTS, KEPT, REMOVED, robust_scores
from gflowbench.suites.sampled_peers import gnn_explainer, shapley
from gflowbench.suites.task import SuiteTask


class SumAndPair(nn.Module):
    """A value: the sum of the features of the nodes that are there, and 4 more if there are two."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        values = torch.zeros(int(batch.max()) + 1, 2)
        values[:, 0] = values[:, 0].index_add(0, batch, x[:, 0])
        values[:, 1] = values[:, 1].index_add(0, batch, torch.ones(len(x)))
        return values[:, :1] + 4 * (values[:, 1:] >= 2).float()


def case_of(values: list[float], target: int | None = None) -> Case:
    n = len(values)
    edges = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    return Case(3, torch.tensor(values)[:, None], edges, torch.arange(n), None, target)


def toy(mode: str) -> SuiteTask:
    return SuiteTask("toy", "graph", mode, [], {}, {}, num_classes=1 if mode == "regression" else 2)


def test_shapley_values_of_two_nodes_by_hand() -> None:
    # An empty graph counts as one node of value 0: 1, then 1 - 3 + 4, and the other way round -3, then 2.
    found = shapley(SumAndPair(), toy("regression"), [case_of([1.0, -3.0])], seed=0, max_nodes=8)[0]
    assert found.signed is not None
    assert found.signed.tolist() == pytest.approx([(1 + 5) / 2, (1 - 3) / 2])
    assert found.scores.tolist() == pytest.approx([3.0, 1.0])


def test_gnn_explainer_scores_every_node_and_keeps_the_random_state() -> None:
    model = build_gnn(Shape(gnn="gin", level="graph", in_channels=1, out_channels=2, num_layers=2), 0).eval()
    case = case_of([1.0, 2.0, 3.0], target=0)
    state = torch.random.get_rng_state()
    one, other = (gnn_explainer(model, toy("multiclass_classification"), [case], seed=1, max_nodes=3) for _ in "ab")
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.equal(one[0].scores, other[0].scores)
    assert one[0].scores.shape == (3,)


def test_robust_scores_by_hand() -> None:
    case = case_of([1.0, 10.0, 100.0])
    draw = torch.rand(CONTEXTS, 3, generator=torch.Generator().manual_seed(1_000_003 * 5 + 3))
    expected = []
    for kept in torch.cat([case.mask([0]) | (draw < KEPT), ~case.mask([0]) | (draw >= REMOVED)]):
        total = float(case.x[kept].sum())
        expected.append(total + 4 * (int(kept.sum()) >= 2))
    row = robust_scores(SumAndPair(), [case], [{"": (0,)}], seed=5)[0]
    assert row["robust_sufficiency"] == pytest.approx(sum(expected[:CONTEXTS]) / CONTEXTS)
    assert row["robust_necessity"] == pytest.approx(115 - sum(expected[CONTEXTS:]) / CONTEXTS)
