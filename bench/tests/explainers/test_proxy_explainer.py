"""ProxyExplainer: its objectives by plain loops, a model that one edge decides, and its promises."""

import math

import pytest
import torch
from torch import nn
from torch_geometric.nn import MessagePassing

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject, create
from gflowbench.explainers.proxy_generator import ProxyGenerator, reconstruction
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import cycle, path


class _Marks(MessagePassing):
    """The mark of a node, and how many marked neighbours it has."""

    def __init__(self) -> None:
        super().__init__(aggr="sum")

    def forward(self, x, edge_index, edge_weight=None):
        return torch.cat([x, self.propagate(edge_index, x=x, weight=edge_weight)], dim=1)

    def message(self, x_j, weight):
        return x_j if weight is None else weight[:, None] * x_j


class OneEdge(nn.Module):
    """Says class 1 where two marked nodes are neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = _Marks()

    def points(self, hidden, batch):
        batch = torch.zeros(len(hidden), dtype=torch.long) if batch is None else batch
        return torch.zeros(int(batch.max()) + 1).index_add_(0, batch, hidden.prod(dim=1))

    def forward(self, x, edge_index, batch=None):
        total = 3 * (self.points(self.layer(x, edge_index), batch) - 1)
        return torch.stack([-total, total], dim=1)


class OneEdgeWeighted(OneEdge):
    """The same with weights of edges."""

    def forward(self, x, edge_index, batch=None, edge_weight=None):
        total = 3 * (self.points(self.layer(x, edge_index, edge_weight), batch) - 1)
        return torch.stack([-total, total], dim=1)


def marked(model: nn.Module) -> Subject:
    graphs = []
    for size in (6, 7, 8, 9):
        graph = cycle(size)
        graph.x = torch.zeros(size, 1)
        graph.x[[1, 2]] = 1.0
        graph.y = torch.ones(1, dtype=torch.long)
        graphs.append(graph)
    return Subject.of(model, Benchmark.from_graphs(graphs, task="graph", num_classes=2), num_hops=1)


def fitted(subject, seed=0, **settings):
    explainer = create("proxy-explainer", **settings)
    explainer.fit(subject, seed)
    return explainer


@pytest.mark.parametrize("model", [OneEdge, OneEdgeWeighted])
def test_the_edge_that_decides_is_found_first(model):
    subject = marked(model())
    assert subject.target.label.tolist() == [1] * 4
    explainer = fitted(subject, epochs=40, learning_rate=0.02, size=0.02, first_temperature=1.0)
    score, instances = explainer.explain(subject, 0).edge, subject.instances
    for number in range(4):
        edges = slice(*instances.edge_ptr[number : number + 2].tolist())
        ends = instances.edge_index[:, edges] - instances.ptr[number]
        decides = torch.isin(ends, torch.tensor([1, 2])).all(dim=0)
        assert score[edges][decides].min() > score[edges][~decides].max() + 0.1


def test_the_loss_of_the_generator_by_a_plain_loop():
    logits = torch.tensor([0.3, -1.2, 2.0, 0.1, -0.7])
    owner = torch.tensor([0, 0, 1, 0, 1])  # the first three are edges
    found = reconstruction(logits, 3, owner, 3, beta=0.4)
    p = [1 / (1 + math.exp(-value)) for value in logits.tolist()]
    wanted = [
        -0.4 * (math.log(p[0]) + math.log(p[1])) / 2 - math.log(1 - p[3]),
        -0.4 * math.log(p[2]) - math.log(1 - p[4]),
        0.0,
    ]
    assert found.tolist() == pytest.approx(wanted, abs=1e-6)


def test_what_is_generated_by_hand():
    instances = Instances.of_graphs([path(3)])
    generator = ProxyGenerator(4)
    codes = torch.eye(3, 4)
    mask = torch.tensor([float({int(u), int(v)} == {0, 1}) for u, v in instances.edge_index.t()])
    ends = torch.tensor([[0, 1, 0], [1, 2, 2]])
    logits, divergence = generator(codes, instances.edge_index, mask, ends, torch.zeros(3, 4))
    # One autoencoder sees the edge 0 - 1 alone, the other one 1 - 2. The ends of an edge have each other's code, two
    # codes are shared; 0 and 2 share none. The scale begins at 5, the bias at -5.
    assert logits.tolist() == pytest.approx([5, 5, -5], abs=1e-5)
    # Squares of the means of 0, 1 and 2 where only 1 - 2 is there: 1, 2, 2; four entries of variance .01.
    rest = 4 * (0.01 - 1 - math.log(0.01))
    assert divergence.tolist() == pytest.approx([(1 + rest) / 2, (2 + rest) / 2, (2 + rest) / 2], rel=1e-5)
