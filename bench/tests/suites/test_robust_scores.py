import pytest
import torch
from torch import Tensor, nn

from gflowbench.suites.cases import Case
from gflowbench.suites.robust_scores import CONTEXTS, KEPT, REMOVED, robust_scores


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
