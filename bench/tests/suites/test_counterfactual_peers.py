"""Other ways to a counterfactual, on a GNN whose class is known: more than two neighbours of node 0 with feature 1."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import SimpleConv

from gflowbench.suites.counterfactual_peers import EdgeProblem, cf_gnn_explainer, exhaustive_minimum, greedy_removal
from gflowexplainer.testing import star


class MoreThanTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.add = SimpleConv(aggr="sum")

    def forward(self, x, edge_index):
        count = self.add(x, edge_index)[:, :1]
        return torch.cat([2.5 - count, count - 2.5], dim=1)


@pytest.fixture
def problem():
    data = star(6, width=1)
    data.x = torch.ones(7, 1)
    data.x[5:] = 0  # two leaves do not count
    return EdgeProblem(MoreThanTwo(), data.x, data.edge_index, 0)


def test_two_of_four_edges_have_to_go(problem):
    assert problem.label == 1
    assert exhaustive_minimum(problem, 10_000) == 2
    assert exhaustive_minimum(problem, 10) is None
    for found in (greedy_removal(problem), cf_gnn_explainer(problem)):
        assert found is not None
        assert problem.changes(found)
    assert len(greedy_removal(problem)) == 2


def test_nothing_is_found_where_nothing_changes_the_class():
    data = star(3, width=1)
    data.x = torch.zeros(4, 1)
    problem = EdgeProblem(MoreThanTwo(), data.x, data.edge_index, 0)
    assert problem.label == 0
    assert greedy_removal(problem) is None
    assert cf_gnn_explainer(problem) is None
    assert exhaustive_minimum(problem, 10_000) == 0
