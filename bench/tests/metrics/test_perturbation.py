import math

import pytest
import torch

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Scores, Subject, create
from gflowbench.metrics.perturbation import perturbation_stability, perturbed_graphs
from gflowexplainer.errors import ConfigError
from gflowexplainer.testing import GraphModel, NodeModel, path, random_graph


@pytest.fixture
def graphs() -> Benchmark:
    return Benchmark.from_graphs([random_graph(10, 0.2, seed=s) for s in range(3)], task="graph", num_classes=2)


class ByFeature:
    """Ranks nodes by their first feature, whatever the edges."""

    name = "by-feature"

    def fit(self, subject: Subject, seed: int) -> None:
        pass

    def explain(self, subject: Subject, seed: int) -> Scores:
        return Scores.of_nodes(subject.instances, subject.instances.x[:, 0].double())


def test_only_edges_outside_go_and_both_directions_together(graphs):
    inside = torch.arange(10) < 5
    for before, after in zip(graphs.graphs, perturbed_graphs(graphs.graphs, [inside] * 3, 1.0, 0), strict=True):
        kept = before.edge_index[:, inside[before.edge_index].all(dim=0)]
        assert torch.equal(after.edge_index, kept)
        assert after.num_nodes == 10
    half = perturbed_graphs(graphs.graphs, [inside] * 3, 0.5, 0)[0].edge_index
    pairs = set(map(tuple, half.t().tolist()))
    assert pairs == {(b, a) for a, b in pairs}
    assert 0 < len(pairs) < graphs.graphs[0].edge_index.size(1)


def test_what_does_not_look_at_edges_is_stable(graphs):
    subject = Subject.of(GraphModel(), graphs)
    assert perturbation_stability(ByFeature(), subject, graphs, top_k=4) == (1.0, pytest.approx(1.0, abs=0.67))


def test_what_looks_at_nothing_but_edges_is_not(graphs):
    subject = Subject.of(GraphModel(), graphs)
    value, same = perturbation_stability(create("degree"), subject, graphs, top_k=4, share=0.6)
    assert same > 0
    assert value < 1


def test_nothing_is_said_where_every_prediction_changes(graphs):
    class Parity(torch.nn.Module):
        """Class 1 if all edges are there."""

        def forward(self, x, edge_index, batch):
            counts = torch.bincount(batch[edge_index[0]], minlength=int(batch.max()) + 1)
            whole = torch.tensor([graph.edge_index.size(1) for graph in graphs.graphs])
            full = (counts == whole[: len(counts)]).float()
            return torch.stack([1 - full, full], dim=1)

    subject = Subject.of(Parity(), graphs, num_hops=1)
    value, same = perturbation_stability(ByFeature(), subject, graphs, top_k=2, share=0.9)
    assert math.isnan(value)
    assert same == 0


def test_nodes_are_refused():
    graph = path(5)
    graph.y = torch.zeros(5, dtype=torch.long)
    benchmark = Benchmark.from_graphs([graph], task="node", num_classes=3)
    with pytest.raises(ConfigError, match="graph level"):
        perturbation_stability(ByFeature(), Subject.of(NodeModel(), benchmark), benchmark, top_k=2)
