"""Graphs with very many features, which are not copied into instances: peers answer as where there are few."""

import pytest
import torch
from torch import nn

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject, create
from gflowbench.explainers.foreign import import_explainer
from gflowbench.models.architecture import Architecture
from gflowbench.models.networks import build
from gflowexplainer.graphs.flat_graphs import WIDE
from gflowexplainer.testing import NodeModel, random_graph

FEW = {"gnnexplainer": {"epochs": 3}, "pgexplainer": {"epochs": 2}, "proxy-explainer": {"epochs": 2, "width": 8}}


class FirstColumns(nn.Module):
    """Looks at the first columns only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.inner = NodeModel()

    def forward(self, x, edge_index):
        return self.inner(x[:, : self.width], edge_index)


def subject_of(model: nn.Module, x: torch.Tensor) -> Subject:
    graph = random_graph(24, 0.03, seed=2)
    graph.x, graph.y = x, torch.zeros(24, dtype=torch.long)
    return Subject.of(model, Benchmark.from_graphs([graph], task="node", index=[0, 5, 12], num_classes=3))


def both() -> tuple[Subject, Subject]:
    x = random_graph(24, 0.03, seed=2).x
    model = FirstColumns(x.size(1))
    narrow, wide = subject_of(model, x), subject_of(model, torch.cat([x, torch.rand(24, WIDE)], dim=1))
    assert narrow.instances.x_row is None
    assert wide.instances.x_row is not None
    return narrow, wide


@pytest.mark.parametrize(
    "name", ["gnnexplainer", "pgexplainer", "proxy-explainer", "saliency", "eig-search", "kernelshap", "gnnshap"]
)
def test_columns_that_nobody_looks_at_change_nothing(name):
    found = []
    for subject in both():
        explainer = create(name, **FEW.get(name, {}))
        explainer.fit(subject, 0)
        found.append(explainer.explain(subject, 0).edge)
    torch.testing.assert_close(*found, atol=1e-5, rtol=0)


def test_algorithms_of_pyg_too():
    narrow, wide = (import_explainer("torch_geometric.explain:GNNExplainer", epochs=2).explain(s, 0) for s in both())
    torch.testing.assert_close(narrow.edge, wide.edge, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["rg-explainer-no-pretraining", "degree-decomposition", "graphmask"])
def test_the_others_score_every_edge(name):
    torch.manual_seed(0)
    shape = Architecture(model="gcn", task="node", in_channels=WIDE + 1, hidden_channels=4, num_classes=3)
    subject = subject_of(build(shape).eval(), torch.rand(24, WIDE + 1))
    explainer = create(name) if name == "degree-decomposition" else create(name, epochs=1)
    explainer.fit(subject, 0)
    explainer.explain(subject, 0).check(subject.instances, name)
