"""EiG-Search on a model whose score is the number of edges at marked nodes, and against one mask at a time."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import MessagePassing

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject, create
from gflowbench.explainers.eig_search import linear_gradients
from gflowbench.explainers.masked_model import MaskedModel, differentiable
from gflowbench.metrics.undirected import UndirectedEdges
from gflowexplainer.errors import ConfigError
from gflowexplainer.testing import cycle


class _Sum(MessagePassing):
    def __init__(self) -> None:
        super().__init__(aggr="sum")

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)


class Marked(nn.Module):
    """Says class 1 by as many points as there are messages from marked to marked nodes, less 3."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = _Sum()

    def forward(self, x, edge_index, batch=None):
        batch = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
        points = (self.layer(x[:, :1], edge_index) * x[:, :1])[:, 0]
        total = torch.zeros(int(batch.max()) + 1).index_add_(0, batch, points) - 3
        return torch.stack([-total, total], dim=1)


@pytest.fixture
def marked() -> Subject:
    graph = cycle(8)
    graph.x = torch.zeros(8, 3)
    graph.x[[0, 1, 2, 3], 0] = 1.0
    graph.y = torch.ones(1, dtype=torch.long)
    return Subject.of(Marked(), Benchmark.from_graphs([graph], task="graph", num_classes=2), num_hops=1)


def test_the_edges_that_count_are_found_by_hand(marked):
    # Three edges lie between marked nodes; each sends two messages, so each is worth 2 points of class 1.
    slope = linear_gradients(marked)
    ends = UndirectedEdges.of(marked.instances).ends
    inside = (ends <= 3).all(dim=0)
    assert int(inside.sum()) == 3
    assert slope[inside].tolist() == pytest.approx([2, 2, 2])
    assert slope[~inside].tolist() == pytest.approx([0] * 5)
    scores = create("eig-search", share=0.5).explain(marked, 0)
    assert scores.selected.nonzero().flatten().tolist() == [0, 1, 2, 3]


def test_slopes_are_what_one_mask_at_a_time_gives(either_subject):
    slope = linear_gradients(either_subject)
    graphs = MaskedModel.of(either_subject)
    edges = UndirectedEdges.of(either_subject.instances)
    owner, entry, pair = edges.owner, edges.entry, edges.pair
    with differentiable(either_subject.predictor), torch.no_grad():
        ones = torch.ones(graphs.edge_owner.numel())
        whole = graphs(ones, sigmoid=False)
        for edge in range(0, owner.numel(), 3):
            mask = ones.clone()
            mask[graphs.own[entry[pair == edge]]] = 0
            change = (whole - graphs(mask, sigmoid=False))[owner[edge]]
            label = either_subject.target.label[owner[edge]]
            wanted = change.norm() if either_subject.instances.level == "node" else change[label]
            assert float(slope[edge]) == pytest.approx(float(wanted), abs=1e-5)


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="share"):
        create("eig-search", share=0.0)
